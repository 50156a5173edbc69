/* SPDX-License-Identifier: Apache-2.0 */

/* POSIX ustar, with the extended headers of pax, and GNU's long names and large numbers. */

#include "agent/image-helper/archive/tar-scan.h"

#include "agent/image-helper/archive/tar-name.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/text.h"

enum {
        BLOCK = 512,
        EXTENSION_BYTES_MAX = 1024 * 1024,
        ENTRIES_MAX = 2000000
};

/* The fields of a header. */
enum {
        NAME = 0,
        NAME_LENGTH = 100,
        SIZE = 124,
        SIZE_LENGTH = 12,
        CHECKSUM = 148,
        CHECKSUM_LENGTH = 8,
        TYPE = 156,
        LINK = 157,
        MAGIC = 257,
        PREFIX = 345,
        PREFIX_LENGTH = 155
};

/* The values of extended headers for the next entry. */
typedef struct Extension {
        char *name, *link;
        uint64_t size;
        bool has_size;
        bool is_sparse; /* its bytes are not those of the file */
} Extension;

static void extension_done(Extension *extension) {
        free(extension->name);
        free(extension->link);
        *extension = (Extension){ 0 };
}

static bool parse_octal(const uint8_t *field, size_t length, uint64_t *ret) {
        uint64_t value = 0;
        size_t i = 0;

        while (i < length && field[i] == ' ')
                i++;
        for (; i < length && field[i] >= '0' && field[i] <= '7'; i++)
                value = value << 3 | (uint64_t) (field[i] - '0');
        *ret = value;
        return i == length || field[i] == ' ' || field[i] == '\0';
}

/* Octal, or GNU's binary form. */
static bool parse_tar_number(const uint8_t *field, size_t length, uint64_t *ret) {
        uint64_t value = 0;

        if (!(field[0] & 0x80))
                return parse_octal(field, length, ret);
        for (size_t i = length - 8; i < length; i++)
                value = value << 8 | field[i];
        *ret = value;
        return field[0] == 0x80 && value < INT64_MAX;
}

static bool is_tar_header(const uint8_t *header) {
        uint64_t sum = 0, stated;

        for (size_t i = 0; i < BLOCK; i++)
                sum += i >= CHECKSUM && i < CHECKSUM + CHECKSUM_LENGTH ? ' ' : header[i];
        return parse_octal(header + CHECKSUM, CHECKSUM_LENGTH, &stated) && stated == sum;
}

static int set_text(char **to, const void *data, size_t length) {
        char *text = strndup(data, length);

        if (!text)
                return -ENOMEM;
        free(*to);
        *to = text;
        return 0;
}

static int apply_pax_record(Extension *extension, const char *key, size_t key_length,
                            const char *value, size_t length) {
        if (key_length == 4 && strncmp(key, "path", 4) == 0)
                return set_text(&extension->name, value, length);
        if (key_length == 8 && strncmp(key, "linkpath", 8) == 0)
                return set_text(&extension->link, value, length);
        if (key_length == 4 && strncmp(key, "size", 4) == 0) {
                extension->size = 0;
                for (size_t i = 0; i < length && value[i] >= '0' && value[i] <= '9'; i++)
                        extension->size = extension->size * 10 + (uint64_t) (value[i] - '0');
                extension->has_size = true;
        }
        if (key_length > 11 && strncmp(key, "GNU.sparse.", 11) == 0)
                extension->is_sparse = true;
        return 0;
}

/* Records of the form "length key=value\n". */
static int read_pax_records(Extension *extension, const char *data, size_t length) {
        while (length > 0) {
                size_t size = 0, i = 0;
                const char *equals;
                int r;

                for (; i < length && i < 8 && data[i] >= '0' && data[i] <= '9'; i++)
                        size = size * 10 + (size_t) (data[i] - '0');
                if (i == length || data[i] != ' ' || size < i + 3 || size > length ||
                    data[size - 1] != '\n')
                        return 0;
                i++;
                equals = memchr(data + i, '=', size - 1 - i);
                if (!equals)
                        return 0;
                r = apply_pax_record(extension, data + i, (size_t) (equals - data) - i, equals + 1,
                                     (size_t) (data + size - 1 - equals) - 1);
                if (r < 0)
                        return r;
                data += size;
                length -= size;
        }
        return 0;
}

/* 1: it was an extended header, and the next header belongs to the same entry. */
static int read_extension(Extension *extension, uint8_t type, const uint8_t *data, uint64_t size) {
        int r;

        if (!type || !strchr("xgLK", type))
                return 0;
        if (size > EXTENSION_BYTES_MAX || type == 'g')
                return 1;
        if (type == 'x')
                r = read_pax_records(extension, (const char *) data, (size_t) size);
        else
                r = set_text(type == 'L' ? &extension->name : &extension->link, data,
                             (size_t) size);
        return r < 0 ? r : 1;
}

static int header_name(const uint8_t *header, char **ret) {
        bool is_ustar = memcmp(header + MAGIC, "ustar\0", 6) == 0;
        int prefix = is_ustar ? (int) strnlen((const char *) header + PREFIX, PREFIX_LENGTH) : 0;

        *ret = text_format("%.*s%s%.*s", prefix, (const char *) header + PREFIX,
                           prefix > 0 ? "/" : "", NAME_LENGTH, (const char *) header + NAME);
        if (!*ret)
                return -ENOMEM;
        return 0;
}

static TarScanKind kind_of_type(uint8_t type, const Extension *extension) {
        switch (type) {
        case '0':
        case '\0':
                return extension->is_sparse ? TAR_SCAN_OTHER : TAR_SCAN_FILE;
        case '1':
                return TAR_SCAN_LINK;
        case '5':
                return TAR_SCAN_DIRECTORY;
        default:
                return TAR_SCAN_OTHER;
        }
}

static int append_entry(TarScan *scan, const ScannedEntry *entry) {
        if (!ARRAY_RESERVE(scan->entries, scan->n, 1))
                return -ENOMEM;
        scan->entries[scan->n++] = *entry;
        return 0;
}

static int set_entry_names(ScannedEntry *entry, const uint8_t *header, const Extension *extension) {
        cleanup_free char *name = NULL, *link = NULL;
        int r;

        r = extension->name ? set_text(&name, extension->name, strlen(extension->name))
                            : header_name(header, &name);
        if (r < 0)
                return r;
        r = tar_name_clean(name, &entry->name, NULL);
        if (r < 0 || entry->kind != TAR_SCAN_LINK)
                return r;
        r = extension->link ? set_text(&link, extension->link, strlen(extension->link))
                            : set_text(&link, header + LINK, NAME_LENGTH);
        if (r < 0)
                return r;
        return tar_name_clean(link, &entry->link, NULL);
}

/* An entry with an invalid name or target is omitted. */
static int add_scanned_entry(TarScan *scan, const uint8_t *header, const Extension *extension,
                             uint64_t offset, uint64_t size) {
        ScannedEntry entry = { .kind = kind_of_type(header[TYPE], extension),
                               .offset = offset,
                               .size = size };
        int r = set_entry_names(&entry, header, extension);

        if (r >= 0)
                r = append_entry(scan, &entry);
        if (r >= 0)
                return 0;
        free(entry.name);
        free(entry.link);
        return r == -ENOMEM ? r : 0;
}

int tar_scan(const uint8_t *data, uint64_t length, TarScan *ret) {
        cleanup_with(extension_done) Extension extension = { 0 };
        uint64_t at = 0;

        while (length - at >= BLOCK && ret->n < ENTRIES_MAX && is_tar_header(data + at)) {
                const uint8_t *header = data + at;
                uint64_t size;
                int r;

                if (!parse_tar_number(header + SIZE, SIZE_LENGTH, &size))
                        return 0;
                r = strchr("xgLK", header[TYPE]) && header[TYPE];
                if (r == 0 && extension.has_size)
                        size = extension.size;
                /* Only files and headers have bytes. A GNU sparse file may have more headers.
                 */
                if (r == 0 && header[TYPE] && strchr("123456", header[TYPE]))
                        size = 0;
                at += BLOCK;
                if (header[TYPE] == 'S' || size > length - at)
                        return 0;
                r = read_extension(&extension, header[TYPE], data + at, size);
                if (r == 0) {
                        r = add_scanned_entry(ret, header, &extension, at, size);
                        extension_done(&extension);
                }
                if (r < 0)
                        return r;
                size += (BLOCK - size % BLOCK) % BLOCK;
                if (size > length - at)
                        return 0;
                at += size;
        }
        return 0;
}

void tar_scan_done(TarScan *scan) {
        for (size_t i = 0; i < scan->n; i++) {
                free(scan->entries[i].name);
                free(scan->entries[i].link);
        }
        free(scan->entries);
        *scan = (TarScan){ 0 };
}
