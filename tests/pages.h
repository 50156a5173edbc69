/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Parts of the manual pages that are written from the tables of the code: a test computes the text
 * of a section and compares it with the page. With MAINSTAY_UPDATE_PAGES=1 in the environment the
 * section is written instead. */

/* A file below packaging/, for free(). */
char *page_read(const char *page);

/* The text below the heading ("## FIELDS") and its blank line, up to the next heading of this or a
 * higher level, for free(). */
char *page_read_section(const char *page, const char *heading);

/* 'expected' ends with a newline. In the page a blank line follows, unless the section is the last
 * one. */
void page_expect_section(const char *page, const char *heading, const char *expected);
