/* hello.c - the shortest complete benchmark: ten thousand squares in a fresh array. */
#include <mew.h>

#include <stdlib.h>

MEW_BENCHMARK(squares)
{
	MEW_LOOP(st) {
		double *square = malloc(10000 * sizeof *square);

		for (size_t i = 0; square != NULL && i < 10000; i++)
			square[i] = (double)i * (double)i;
		mew_keep(square);
		free(square);
	}
}

MEW_MAIN()
