/*
 * hotpath.h - the last include of every file whose code runs inside malloc or inside a signal handler.
 * Layer L0. Poisons what must not be called there, so that a slip does not compile.
 */
#ifndef MEW_HOTPATH_H
#define MEW_HOTPATH_H

#pragma GCC poison malloc calloc realloc strdup asprintf printf fprintf snprintf puts fopen fclose
#pragma GCC poison pthread_mutex_lock pthread_mutex_unlock pthread_rwlock_rdlock pthread_once sem_wait
#pragma GCC poison dlopen dlclose dlsym dl_iterate_phdr getenv exit abort

#endif
