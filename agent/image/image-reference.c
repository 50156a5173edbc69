/* SPDX-License-Identifier: Apache-2.0 */

/* The grammar is that of github.com/distribution/reference, read from left to right:
 *
 *     [domain "/"] component { "/" component } [":" tag] ["@" digest]
 *
 * The first component is a domain if it contains a dot, a colon or an upper-case letter, or is
 * "localhost". The only digest algorithm is sha256. */

#include "agent/image/image-reference.h"

#include "common/cleanup.h"
#include "common/strv.h"

#include <ctype.h>

enum {
        NAME_LENGTH_MAX = 255,
        TAG_LENGTH_MAX = 128,
        HEX_LENGTH = 64
};

#define DEFAULT_DOMAIN "docker.io"
#define DIGEST_PREFIX  "sha256:"

/* The parts of a reference, each in its own piece of one copy. */
typedef struct ImageReferenceParts {
        char *domain; /* NULL: the default */
        char *path;
        char *tag;    /* NULL: none */
        char *digest; /* NULL: none */
} ImageReferenceParts;

static bool is_lower_or_digit(char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_tag_word_character(char c) {
        return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Letters and digits, with '.', '_', '__' or any number of '-' between them. */
static size_t path_component_length(const char *p) {
        const char *start = p;

        for (;;) {
                const char *separator;

                if (!is_lower_or_digit(*p))
                        return 0;
                while (is_lower_or_digit(*p))
                        p++;
                separator = p;
                if (*p == '.')
                        p++;
                else if (*p == '_')
                        p += p[1] == '_' ? 2 : 1;
                else
                        p += strspn(p, "-");
                if (p == separator)
                        return (size_t) (p - start);
        }
}

static bool repository_path_is_valid(const char *path) {
        for (;;) {
                size_t n = path_component_length(path);

                if (n == 0)
                        return false;
                path += n;
                if (*path == '\0')
                        return true;
                if (*path++ != '/')
                        return false;
        }
}

static bool registry_port_is_valid(const char *p) {
        return p[0] && strspn(p, "0123456789") == strlen(p);
}

/* Labels with dots between them, or an IPv6 address in brackets; optionally a port. */
static bool registry_domain_is_valid(const char *p) {
        if (*p == '[') {
                size_t n = strspn(p + 1, "0123456789abcdefABCDEF:");

                return n > 0 && p[n + 1] == ']' &&
                       (p[n + 2] == '\0' || (p[n + 2] == ':' && registry_port_is_valid(p + n + 3)));
        }
        for (;;) {
                const char *start = p;

                while (isalnum((unsigned char) *p) || *p == '-')
                        p++;
                if (p == start || *start == '-' || p[-1] == '-')
                        return false;
                if (*p == '\0')
                        return true;
                if (*p == ':')
                        return registry_port_is_valid(p + 1);
                if (*p++ != '.')
                        return false;
        }
}

static bool image_tag_is_valid(const char *tag) {
        size_t n = 0;

        if (!is_tag_word_character(*tag))
                return false;
        while (is_tag_word_character(tag[n]) || tag[n] == '.' || tag[n] == '-')
                n++;
        return n <= TAG_LENGTH_MAX && tag[n] == '\0';
}

static bool reference_digest_is_valid(const char *digest) {
        size_t prefix = strlen(DIGEST_PREFIX);

        return strncmp(digest, DIGEST_PREFIX, prefix) == 0 &&
               strspn(digest + prefix, "0123456789abcdef") == HEX_LENGTH &&
               digest[prefix + HEX_LENGTH] == '\0';
}

static bool has_upper_case(const char *text) {
        for (; *text; text++)
                if (*text >= 'A' && *text <= 'Z')
                        return true;
        return false;
}

/* Splits the copy into parts. */
static void split_image_reference(char *copy, ImageReferenceParts *ret) {
        char *slash = strchr(copy, '/'), *at = strchr(copy, '@'), *colon;

        *ret = (ImageReferenceParts){ .path = copy };
        if (at) {
                *at = '\0';
                ret->digest = at + 1;
                slash = strchr(copy, '/');
        }
        if (slash) {
                *slash = '\0';
                if (strpbrk(copy, ".:") || has_upper_case(copy) || streq(copy, "localhost")) {
                        ret->domain = copy;
                        ret->path = slash + 1;
                } else {
                        *slash = '/';
                }
        }
        colon = strchr(ret->path, ':');
        if (colon) {
                *colon = '\0';
                ret->tag = colon + 1;
        }
}

static int check_image_reference(const ImageReferenceParts *parts, Error *reterr) {
        if (has_upper_case(parts->path))
                return error_setf(reterr, EINVAL, "the repository name must be lower case");
        if (parts->domain && !registry_domain_is_valid(parts->domain))
                return error_setf(reterr, EINVAL, "'%s' is not a registry", parts->domain);
        if (!repository_path_is_valid(parts->path))
                return error_setf(reterr, EINVAL, "invalid reference format");
        if (parts->tag && !image_tag_is_valid(parts->tag))
                return error_setf(reterr, EINVAL, "'%s' is not a tag", parts->tag);
        if (parts->digest && !reference_digest_is_valid(parts->digest))
                return error_setf(reterr, EINVAL, "'%s' is not a sha256 digest", parts->digest);
        if (!parts->domain && strlen(parts->path) == HEX_LENGTH &&
            strspn(parts->path, "0123456789abcdef") == HEX_LENGTH)
                return error_setf(reterr, EINVAL, "an image ID is not a name");
        return 0;
}

static int join_image_reference(const ImageReferenceParts *parts, char **ret, Error *reterr) {
        const char *domain = parts->domain, *tag = parts->tag;
        bool is_default =
                !domain || streq(domain, DEFAULT_DOMAIN) || streq(domain, "index.docker.io");
        const char *library = is_default && !strchr(parts->path, '/') ? "library/" : "";
        char *joined;

        if (is_default)
                domain = DEFAULT_DOMAIN;
        if (strlen(domain) + 1 + strlen(library) + strlen(parts->path) > NAME_LENGTH_MAX)
                return error_setf(reterr, EINVAL, "the name is longer than %d characters",
                                  NAME_LENGTH_MAX);
        if (!tag && !parts->digest)
                tag = "latest";
        if (asprintf(&joined, "%s/%s%s%s%s%s%s", domain, library, parts->path, tag ? ":" : "",
                     strna(tag), parts->digest ? "@" : "", strna(parts->digest)) < 0)
                return -ENOMEM;
        *ret = joined;
        return 0;
}

int image_reference_normalise(const char *reference, char **ret, Error *reterr) {
        cleanup_free char *copy = strdup(reference);
        ImageReferenceParts parts;
        int r;

        if (!copy)
                return -ENOMEM;
        split_image_reference(copy, &parts);
        r = check_image_reference(&parts, reterr);
        if (r >= 0)
                r = join_image_reference(&parts, ret, reterr);
        return r < 0 ? error_prefixf(reterr, r, "couldn't parse image name '%.512s'", reference)
                     : 0;
}

const char *image_reference_digest(const char *reference) {
        const char *at = strchr(reference, '@');

        return at ? at + 1 : NULL;
}

static int add_normalised_image_name(const char *name, char ***names) {
        cleanup_free char *normal = NULL;
        int r;

        r = image_reference_normalise(name, &normal, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        strv_foreach(other, *names)
                if (streq(*other, normal))
                        return 0;
        return strv_append(names, normal);
}

int image_reference_names_from_archive(const char *name, const char *stem, char ***names) {
        cleanup_free char *tagged = NULL;
        int r;

        r = add_normalised_image_name(name, names);
        if (r < 0 || strpbrk(name, ":/@"))
                return r;
        if (asprintf(&tagged, "%s:%s", stem, name) < 0) {
                tagged = NULL;
                return -ENOMEM;
        }
        return add_normalised_image_name(tagged, names);
}

char *image_archive_stem(const char *file_name) {
        static const char *const suffixes[] = { ".gz",   ".zst", ".zstd", ".tgz",
                                                ".tzst", ".tar", ".oci",  ".docker" };
        char *stem = strdup(file_name);
        size_t i = 0;

        while (stem && i < N_ELEMENTS(suffixes)) {
                size_t n = strlen(stem), m = strlen(suffixes[i]);

                if (n > m && streq(stem + n - m, suffixes[i])) {
                        stem[n - m] = '\0';
                        i = 0;
                } else {
                        i++;
                }
        }
        return stem;
}
