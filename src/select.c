/*
 * select.c - see select.h.
 * Layer L4. Caller thread.
 */
#include "config.h"

#include "select.h"

#include "error.h"

#include <stdio.h>
#include <string.h>

int mew_select_init(struct mew_select *s, const char *pattern, const char *literal, const char *const *tags,
		    size_t ntags, struct mew_error *err)
{
	char why[120];
	int fault;

	*s = (struct mew_select){ .literal = literal, .tags = tags, .ntags = ntags };
	if (pattern == NULL)
		return MEW_OK;
	fault = regcomp(&s->pattern, pattern, REG_EXTENDED | REG_NOSUB);
	if (fault != 0) {
		(void)regerror(fault, &s->pattern, why, sizeof why);
		return mew_error_set(err, MEW_E_INVALID, "\"%.80s\" is not a regular expression: %s", pattern, why);
	}
	s->has_pattern = true;
	return MEW_OK;
}

void mew_select_fini(struct mew_select *s)
{
	if (s->has_pattern)
		regfree(&s->pattern);
	s->has_pattern = false;
}

static bool has_tag(const char *tags, const char *tag)
{
	size_t n = strlen(tag);

	for (const char *p = tags; p != NULL && *p != '\0';) {
		size_t word;

		p += strspn(p, " ");
		word = strcspn(p, " ");
		if (word == n && n > 0 && strncmp(p, tag, n) == 0)
			return true;
		p += word;
	}
	return false;
}

bool mew_select_matches(const struct mew_select *s, const char *key, const char *label, const char *tags)
{
	const char *mark = strstr(key, "/case:");
	char shown[512];
	bool any = s->ntags == 0;

	for (size_t i = 0; i < s->ntags && !any; i++)
		any = has_tag(tags, s->tags[i]);
	if (!any)
		return false;
	(void)snprintf(shown, sizeof shown, "%.*s[%s]", mark != NULL ? (int)(mark - key) : (int)strlen(key), key,
		       label != NULL ? label : "");
	if (s->literal != NULL && strstr(key, s->literal) == NULL && strstr(shown, s->literal) == NULL)
		return false;
	if (!s->has_pattern)
		return true;
	return regexec(&s->pattern, key, 0, NULL, 0) == 0 || regexec(&s->pattern, shown, 0, NULL, 0) == 0 ||
	       (label != NULL && regexec(&s->pattern, label, 0, NULL, 0) == 0);
}
