/*
 * fx_html_page.c - write the page of a known model, for the tests in a browser.
 * Test fixture: fx_html_page SHAPE PAGE.html [FRAMES [BASE]].
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "fx_html.h"

int main(int argc, char **argv)
{
	struct mew_model *m, *base = NULL;
	int status;

	if (argc < 3) {
		(void)fprintf(stderr, "usage: fx_html_page codec|before|recorded|twins|older_twins|hostile|empty|many|large "
				      "PAGE.html [FRAMES [BASE]]\n");
		return 2;
	}
	m = fx_html_model(argv[1], argc > 3 ? (size_t)strtoul(argv[3], NULL, 10) : 10000);
	if (argc > 4)
		base = fx_html_model(argv[4], 10000);
	if (m == NULL || (argc > 4 && base == NULL))
		return 2;
	status = fx_html_write(m, base, argv[2]);
	mew_model_free(m);
	mew_model_free(base);
	return status == MEW_OK ? 0 : 1;
}
