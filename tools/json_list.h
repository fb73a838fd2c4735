/*
 * json_list.h - find a long list inside JSON without making a tree of it, and walk its items.
 * Layer L6. Private to the reader of results. Finding is not checking: brackets are counted, nothing more; each piece
 * is to be given to a parser, and when all of them are sound, so is the whole.
 */
#ifndef MEW_JSON_LIST_H
#define MEW_JSON_LIST_H

#include "base.h"

struct mew_json_span { /* bytes of a text: from, and the first that is no longer part */
	size_t from, to;
};

/*
 * Find the list that is the value of a member of the top object.
 *
 * text    `bytes` long, no NUL needed; borrowed
 * key     as it is spelled in the text between quotes, without escapes
 * list    out: from its "[" to behind its "]"; of the last member with this key, as parsers take it
 * Returns false when there is no such member, when its value is no list, or when the text ends before the object does
 * Context any thread
 */
bool mew_json_find_list(const char *text, size_t bytes, const char *key, struct mew_json_span *list);

/*
 * Walk the items. Start with *at = list.from.
 *
 * item    out: the item with the blanks around it; nothing but blanks where an item is missing ("[1,,2]", "[1,]")
 * Returns false behind the last one; an empty list has none
 */
bool mew_json_next_item(const char *text, const struct mew_json_span *list, size_t *at, struct mew_json_span *item);

#endif
