/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/columns.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/utf8.h"

typedef struct ColumnCell {
        const char *text;
        size_t length;
        unsigned width; /* width of its column, once it is known */
} ColumnCell;

/* The last cell of a line ends with the newline, not with a tab, so it does not belong to a column.
 */
typedef struct ColumnLine {
        ColumnCell cells[COLUMNS_MAX];
        unsigned n_cells;
} ColumnLine;

static unsigned count_characters(const char *text, size_t length) {
        unsigned n = 0;

        for (size_t i = 0; i < length; i++)
                n += ((unsigned char) text[i] & 0xc0) != 0x80;
        return n;
}

static void split_line(const char *text, size_t length, ColumnLine *ret) {
        ret->n_cells = 0;
        for (;;) {
                const char *tab = memchr(text, '\t', length);

                /* Cells beyond the last column become part of it. */
                if (!tab || ret->n_cells == COLUMNS_MAX - 1) {
                        ret->cells[ret->n_cells++] = (ColumnCell){ .text = text, .length = length };
                        return;
                }
                ret->cells[ret->n_cells++] =
                        (ColumnCell){ .text = text, .length = (size_t) (tab - text) };
                length -= (size_t) (tab + 1 - text);
                text = tab + 1;
        }
}

static bool has_column(const ColumnLine *line, unsigned column) {
        return column + 1 < line->n_cells;
}

/* Sets a common width for the lines starting at 'first' that have the column; returns their end. */
static size_t align_block(Columns *columns, ColumnLine *lines, size_t n, size_t first,
                          unsigned column) {
        unsigned width = MAX(columns->min_width, columns->remembers ? columns->widths[column] : 0);
        size_t end = first;

        for (; end < n && has_column(&lines[end], column); end++) {
                const ColumnCell *cell = &lines[end].cells[column];

                width = MAX(width, count_characters(cell->text, cell->length) + columns->padding);
        }
        for (size_t i = first; i < end; i++)
                lines[i].cells[column].width = width;
        columns->widths[column] = width;
        return end;
}

static void write_printable_text(const char *text, size_t length, FILE *out) {
        for (size_t i = 0; i < length;) {
                unsigned char c = (unsigned char) text[i];
                size_t n = utf8_printable_length(text + i, length - i);

                if (n > 0)
                        fwrite(text + i, 1, n, out);
                else if (c < ' ' || c == 0x7f)
                        fprintf(out, "^%c", c ^ 0x40);
                else
                        fputc('?', out);
                i += MAX(n, (size_t) 1);
        }
}

static void write_column_line(const ColumnLine *line, FILE *out) {
        for (unsigned column = 0; column < line->n_cells; column++) {
                const ColumnCell *cell = &line->cells[column];

                write_printable_text(cell->text, cell->length, out);
                if (!has_column(line, column))
                        continue;
                for (unsigned n = count_characters(cell->text, cell->length); n < cell->width; n++)
                        fputc(' ', out);
        }
        fputc('\n', out);
}

static int split_text(const char *text, ColumnLine **ret_lines, size_t *ret_n) {
        cleanup_free ColumnLine *lines = NULL;
        size_t n = 0, i = 0;

        for (const char *p = text; (p = strchr(p, '\n')); p++)
                n++;
        lines = calloc(n + 1, sizeof(*lines));
        if (!lines)
                return -ENOMEM;
        for (; i < n; i++) {
                size_t length = strcspn(text, "\n");

                split_line(text, length, &lines[i]);
                text += length + 1;
        }
        if (*text)
                split_line(text, strlen(text), &lines[i++]);
        *ret_lines = TAKE_PTR(lines);
        *ret_n = i;
        return 0;
}

int columns_write(Columns *columns, const char *text, FILE *out) {
        cleanup_free ColumnLine *lines = NULL;
        size_t n;
        int r;

        r = split_text(text, &lines, &n);
        if (r < 0)
                return r;
        for (unsigned column = 0; column < COLUMNS_MAX; column++)
                for (size_t i = 0; i < n;)
                        i = has_column(&lines[i], column)
                                    ? align_block(columns, lines, n, i, column)
                                    : i + 1;
        for (size_t i = 0; i < n; i++)
                write_column_line(&lines[i], out);
        return 0;
}

int columns_print_description(FILE *stream, char **text) {
        Columns columns = COLUMNS_DESCRIPTION;
        cleanup_free char *whole = memstream_finish(stream, text);

        *text = NULL;
        return whole ? columns_write(&columns, whole, stdout) : -ENOMEM;
}
