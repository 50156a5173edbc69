/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/fstab.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <sys/mount.h>

static int parse_test_fstab(const char *text, Fstab *ret, Error *reterr) {
        cleanup_free char *copy = strdup(text);

        REQUIRE(copy);
        return fstab_parse(copy, strlen(copy), ret, reterr);
}

TEST(a_line_becomes_a_mount)
{
        cleanup_fstab Fstab fstab = { 0 };
        const MountSpec *spec;

        EXPECT_EQ(parse_test_fstab(
                          "# a comment\n"
                          "\n"
                          "   \t\n"
                          "tmpfs /run/x tmpfs size=64k,mode=1777,nosuid,nodev,noexec,ro,rw 0 0\n"
                          "/with\\040blank /run/y none rbind,ro,rslave 0 0\n"
                          "/z /run/z none bind,shared",
                          &fstab, NULL),
                  0);
        EXPECT_EQ(fstab.n, 3);
        spec = &fstab.mounts[0];
        EXPECT_STREQ(spec->source, "tmpfs");
        EXPECT_STREQ(spec->target, "/run/x");
        EXPECT_STREQ(spec->type, "tmpfs");
        EXPECT_STREQ(spec->data, "size=64k,mode=1777");
        EXPECT_EQ(spec->flags, MS_NOSUID | MS_NODEV | MS_NOEXEC);
        EXPECT(!spec->bind);
        spec = &fstab.mounts[1];
        EXPECT_STREQ(spec->source, "/with blank");
        EXPECT(spec->bind && spec->recursive && spec->propagate_all);
        EXPECT_EQ(spec->flags, MS_RDONLY);
        EXPECT_EQ(spec->propagation, MS_SLAVE);
        EXPECT(!spec->data);
        spec = &fstab.mounts[2];
        EXPECT(spec->bind && !spec->recursive && !spec->propagate_all);
        EXPECT_EQ(spec->propagation, MS_SHARED);
        EXPECT(!spec->hostpath_type && !spec->volume && !spec->beneath);
}

TEST(commas_between_quotes_are_part_of_a_value)
{
        cleanup_fstab Fstab fstab = { 0 };

        EXPECT_EQ(
                parse_test_fstab(
                        "overlay /x overlay lowerdir=/a,context=\"u:r:t:s0:c1,c2\",ro 0 0\n"
                        "/v none none x-mainstay.label=\"u:r:t:s0:c1,c2\",x-mainstay.volume=v 0 0\n"
                        "/w none none x-mainstay.label=u:r:t 0 0\n"
                        "/x none none x-mainstay.group=2000:root-mismatch,x-mainstay.volume=x 0 "
                        "0\n",
                        &fstab, NULL),
                0);
        EXPECT_EQ(fstab.n, 4);
        EXPECT_STREQ(fstab.mounts[0].data, "lowerdir=/a,context=\"u:r:t:s0:c1,c2\"");
        EXPECT_EQ(fstab.mounts[0].flags, MS_RDONLY);
        EXPECT_STREQ(fstab.mounts[1].source, "/v");
        EXPECT_STREQ(fstab.mounts[1].label, "u:r:t:s0:c1,c2");
        EXPECT_STREQ(fstab.mounts[1].volume, "v");
        EXPECT_STREQ(fstab.mounts[2].label, "u:r:t");
        EXPECT_STREQ(fstab.mounts[3].group, "2000:root-mismatch");
}

TEST(our_own_options_are_removed_from_the_mount_data)
{
        cleanup_fstab Fstab fstab = { 0 };

        EXPECT_EQ(parse_test_fstab(
                          "/x /y none rbind,x-mainstay.volume=data,x-mainstay.hostpath= 0 0\n"
                          "/x /y none bind,x-mainstay.hostpath=DirectoryOrCreate 0 0\n"
                          "/x /y none bind,x-mainstay.beneath=/x 0 0\n"
                          "/p\\040q /d none x-mainstay.copy=/r 0 0\n"
                          "/s /v/p none x-mainstay.volume=v,x-mainstay.mountpoint=/v 0 0\n",
                          &fstab, NULL),
                  0);
        EXPECT_EQ(fstab.n, 5);
        EXPECT_STREQ(fstab.mounts[3].copy, "/r");
        EXPECT_STREQ(fstab.mounts[3].source, "/p q");
        EXPECT_STREQ(fstab.mounts[4].mount_point, "/v");
        EXPECT_STREQ(fstab.mounts[0].volume, "data");
        EXPECT_STREQ(fstab.mounts[0].hostpath_type, "");
        EXPECT_STREQ(fstab.mounts[1].hostpath_type, "DirectoryOrCreate");
        EXPECT_STREQ(fstab.mounts[2].beneath, "/x");
}

TEST(nfs_mount_options_are_not_interpreted_as_our_flags)
{
        cleanup_fstab Fstab fstab = { 0 };

        EXPECT_EQ(parse_test_fstab(
                          "nas:/a /x nfs x-mainstay.volume=v,x-mainstay.nfs=\"ro,hard\" 0 0\n"
                          "nas:/b /y nfs x-mainstay.nfs=\"\" 0 0\n",
                          &fstab, NULL),
                  0);
        EXPECT_STREQ(fstab.mounts[0].nfs, "ro,hard");
        EXPECT(fstab.mounts[0].flags == 0 && !fstab.mounts[0].data);
        EXPECT_STREQ(fstab.mounts[1].nfs, "");
        EXPECT_EQ(parse_test_fstab("nas:/a /x nfs ro,x-mainstay.nfs=\"\" 0 0\n", &fstab, NULL),
                  -EINVAL);
}

TEST(an_invalid_line_is_reported_with_its_number)
{
        static const struct {
                const char *text, *says;
        } cases[] = {
                { "\nnonsense\n", "line 2: expected a source, a target, a type and options" },
                { "a /b c\n", "line 1: expected a source, a target, a type and options" },
                { "a b tmpfs rw 0 0\n", "line 1: 'b' is not an absolute path" },
                { "/a /b none bind,size=1 0 0",
                  "line 1: a bind mount does not take the option 'size=1'" },
                { "/a /b none bind,x-mainstay.new=1 0 0",
                  "line 1: unknown option 'x-mainstay.new=1'" },
                { "/a /b none bind,x-mainstay.volume 0 0",
                  "line 1: unknown option 'x-mainstay.volume'" },
                { "a /b tmpfs x-mainstay.hostpath=File 0 0",
                  "line 1: x-mainstay.hostpath, .beneath and .idmap need a bind mount" },
                { "/a /b none bind,x-mainstay.label=u:r:t 0 0",
                  "line 1: a line with x-mainstay.label, .group, .copy or .mountpoint must not be "
                  "a "
                  "mount" },
                { "/a none none ,x-mainstay.label=u:r:t,c1 0 0",
                  "line 1: a line with x-mainstay.label, .group, .copy or .mountpoint must not be "
                  "a "
                  "mount" },
                { "/a none none x-mainstay.copy=/r 0 0",
                  "line 1: a line with x-mainstay.label, .group, .copy or .mountpoint must not be "
                  "a "
                  "mount" },
                { "/a /b none rbind,x-mainstay.mountpoint=/b 0 0",
                  "line 1: a line with x-mainstay.label, .group, .copy or .mountpoint must not be "
                  "a "
                  "mount" },
        };
        char nul[] = "a /b tmpfs rw\0 0 0";

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_fstab Fstab fstab = { 0 };
                cleanup_error Error error = ERROR_NULL;

                EXPECT_EQ(parse_test_fstab(cases[i].text, &fstab, &error), -EINVAL);
                EXPECT_STREQ(error.message, cases[i].says);
                EXPECT_EQ(fstab.n, 0);
        }
        EXPECT_EQ(fstab_parse(nul, sizeof(nul) - 1, &(Fstab){ 0 }, NULL), -EINVAL);
}

/* getmntent_r() silently cuts a line longer than its buffer. */
TEST(a_line_of_many_layers_is_not_truncated)
{
        cleanup_free char *text = NULL;
        cleanup_fstab Fstab fstab = { 0 };
        size_t length = 0;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        (void) fputs("overlay /rootfs overlay lowerdir=/layers/0", out);
        for (unsigned i = 1; i < 2000; i++)
                (void) fprintf(out, ":/layers/%064u", i);
        (void) fputs(",upperdir=/u,workdir=/w 0 0\n", out);
        REQUIRE(fclose(out) == 0);
        EXPECT_EQ(fstab_parse(text, length, &fstab, NULL), 0);
        EXPECT_EQ(fstab.n, 1);
        EXPECT(strstr(fstab.mounts[0].data, "1999,upperdir=/u,workdir=/w"));
}
