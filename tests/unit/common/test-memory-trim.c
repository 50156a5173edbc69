/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory-trim.h"
#include "tests/test.h"

#include <gnutls/gnutls.h>
#include <link.h>

/* Pages of files, in KiB. */
static long resident_of_files(void) {
        FILE *file = fopen("/proc/self/status", "re");
        char line[256];
        long kib = -1;

        while (file && fgets(line, sizeof(line), file))
                (void) sscanf(line, "RssFile: %ld", &kib);
        if (file)
                (void) fclose(file);
        return kib;
}

static unsigned sum;

/* Reads all mapped read-only pages of libraries. */
static int read_segment_pages(struct dl_phdr_info *object, size_t size, void *userdata) {
        for (size_t i = 0; object->dlpi_name[0] && i < object->dlpi_phnum; i++) {
                const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
                const volatile char *bytes = (const char *) object->dlpi_addr + segment->p_vaddr;

                if (segment->p_type != PT_LOAD || segment->p_flags & PF_W ||
                    !(segment->p_flags & PF_R))
                        continue;
                for (size_t at = 0; at < segment->p_filesz; at += 4096)
                        sum += (unsigned char) bytes[at];
        }
        return 0;
}

TEST(unused_pages_are_returned_and_reread_unchanged)
{
        unsigned before, after;
        long all, left;

        EXPECT(gnutls_check_version(NULL) != NULL); /* a large library */
        (void) dl_iterate_phdr(read_segment_pages, NULL);
        before = sum;
        all = resident_of_files();
        memory_trim();
        left = resident_of_files();
        EXPECT(all > 0 && left > 0);
        EXPECT(left < all / 2);
        sum = 0;
        (void) dl_iterate_phdr(read_segment_pages, NULL);
        after = sum;
        EXPECT_EQ(after, before);
}

TEST(allocated_memory_is_unchanged)
{
        char *kept[64], *filling[64];

        for (size_t i = 0; i < N_ELEMENTS(kept); i++) {
                filling[i] = calloc(1, 30000);
                kept[i] = strdup("kept");
                REQUIRE(filling[i] && kept[i]);
        }
        for (size_t i = 0; i < N_ELEMENTS(filling); i++)
                free(filling[i]);
        memory_trim();
        for (size_t i = 0; i < N_ELEMENTS(kept); i++) {
                EXPECT_STREQ(kept[i], "kept");
                free(kept[i]);
        }
}
