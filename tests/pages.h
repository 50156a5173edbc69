/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sections of the manual pages that are generated from tables in the code: a test computes the text
 * of a section and compares it with the page. With MAINSTAY_UPDATE_PAGES=1 in the environment the
 * section is written instead. */

/* Returns the contents of a file below packaging/, which the caller frees. */
char *page_read(const char *page);

/* Returns the text below the heading ("## FIELDS") and its blank line, up to the next heading of
 * the same or a higher level. The caller frees it. */
char *page_read_section(const char *page, const char *heading);

/* 'expected' ends with a newline. In the page a blank line follows, unless the section is the last
 * one. */
void page_expect_section(const char *page, const char *heading, const char *expected);
