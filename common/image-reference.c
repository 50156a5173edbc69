/* SPDX-License-Identifier: Apache-2.0 */
#include "common/image-reference.h"

#include "common/cleanup.h"
#include "common/registry-name.h"
#include "common/text.h"

enum {
        NAME_LENGTH_MAX = 255,
        TAG_LENGTH_MAX = 128,
        HEX_LENGTH = 64
};

#define DEFAULT_DOMAIN "docker.io"
#define LIBRARY        "library/"
#define DIGEST_PREFIX  "sha256:"

/* The parts of a text, all within one copy. */
typedef struct ReferenceParts {
        char *domain; /* NULL: the default */
        char *path;
        char *tag;    /* NULL: none */
        char *digest; /* NULL: none */
} ReferenceParts;

void image_reference_done(ImageReference *reference) {
        free(reference->registry);
        free(reference->repository);
        free(reference->tag);
        free(reference->digest);
        *reference = (ImageReference){ 0 };
}

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

static bool is_domain(const char *component) {
        return strpbrk(component, ".:") || has_upper_case(component) ||
               streq(component, "localhost");
}

/* Splits the copy into parts. */
static void split_image_reference(char *copy, ReferenceParts *ret) {
        char *slash, *at = strchr(copy, '@'), *colon;

        *ret = (ReferenceParts){ .path = copy };
        if (at) {
                *at = '\0';
                ret->digest = at + 1;
        }
        slash = strchr(copy, '/');
        if (slash) {
                *slash = '\0';
                if (is_domain(copy)) {
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

static int check_image_reference(const ReferenceParts *parts, Error *reterr) {
        if (has_upper_case(parts->path))
                return error_setf(reterr, EINVAL, "the repository name must be lower case");
        if (!repository_path_is_valid(parts->path))
                return error_setf(reterr, EINVAL, "invalid reference format");
        if (parts->tag && !image_tag_is_valid(parts->tag))
                return error_setf(reterr, EINVAL, "'%s' is not a tag", parts->tag);
        if (parts->digest && !reference_digest_is_valid(parts->digest))
                return error_setf(reterr, EINVAL, "'%s' is not a sha256 digest", parts->digest);
        if (!parts->domain && !parts->tag && !parts->digest && strlen(parts->path) == HEX_LENGTH &&
            strspn(parts->path, "0123456789abcdef") == HEX_LENGTH)
                return error_setf(reterr, EINVAL, "an image ID is not a name");
        return 0;
}

static int copy_optional_part(const char *part, char **ret) {
        if (part && !(*ret = strdup(part)))
                return -ENOMEM;
        return 0;
}

static int copy_reference_parts(const ReferenceParts *parts, ImageReference *reference,
                                Error *reterr) {
        const char *library =
                streq(reference->registry, DEFAULT_DOMAIN) && !strchr(parts->path, '/') ? LIBRARY
                                                                                        : "";

        if (strlen(reference->registry) + 1 + strlen(library) + strlen(parts->path) >
            NAME_LENGTH_MAX)
                return error_setf(reterr, EINVAL, "the name is longer than %d characters",
                                  NAME_LENGTH_MAX);
        reference->repository = text_format("%s%s", library, parts->path);
        if (!reference->repository)
                return -ENOMEM;
        if (copy_optional_part(parts->tag, &reference->tag) < 0 ||
            copy_optional_part(parts->digest, &reference->digest) < 0)
                return -ENOMEM;
        return 0;
}

static int parse_image_reference(const char *text, ImageReference *ret, Error *reterr) {
        cleanup_with(image_reference_done) ImageReference reference = { 0 };
        cleanup_free char *copy = strdup(text);
        ReferenceParts parts;
        int r;

        if (!copy)
                return -ENOMEM;
        split_image_reference(copy, &parts);
        r = registry_name_normalise(parts.domain ? parts.domain : DEFAULT_DOMAIN,
                                    &reference.registry, reterr);
        if (r >= 0)
                r = check_image_reference(&parts, reterr);
        if (r >= 0)
                r = copy_reference_parts(&parts, &reference, reterr);
        if (r < 0)
                return r;
        *ret = reference;
        reference = (ImageReference){ 0 };
        return 0;
}

int image_reference_parse(const char *text, ImageReference *ret, Error *reterr) {
        int r = parse_image_reference(text, ret, reterr);

        return r < 0 ? error_prefixf(reterr, r, "couldn't parse image name '%.512s'", text) : 0;
}

static char *format_reference(const ImageReference *reference, const char *tag) {
        return text_format("%s/%s%s%s%s%s", reference->registry, reference->repository,
                           tag ? ":" : "", strna(tag), reference->digest ? "@" : "",
                           strna(reference->digest));
}

char *image_reference_format(const ImageReference *reference) {
        return format_reference(reference, reference->tag);
}

int image_reference_normalise(const char *reference, char **ret, Error *reterr) {
        cleanup_with(image_reference_done) ImageReference parsed = { 0 };
        int r = image_reference_parse(reference, &parsed, reterr);

        if (r < 0)
                return r;
        *ret = format_reference(&parsed, parsed.tag || parsed.digest ? parsed.tag : "latest");
        return *ret ? 0 : -ENOMEM;
}

bool image_reference_equals(const char *text, const char *normal) {
        cleanup_free char *name = NULL;

        return streq(text, normal) ||
               (image_reference_normalise(text, &name, NULL) >= 0 && streq(name, normal));
}

const char *image_reference_digest(const char *reference) {
        const char *at = strchr(reference, '@');

        return at ? at + 1 : NULL;
}

int image_reference_repository(const char *reference, char **ret, Error *reterr) {
        cleanup_with(image_reference_done) ImageReference parsed = { 0 };
        int r = image_reference_parse(reference, &parsed, reterr);

        if (r < 0)
                return r;
        *ret = text_format("%s/%s", parsed.registry, parsed.repository);
        if (!*ret)
                return -ENOMEM;
        return 0;
}

int image_reference_normalise_prefix(const char *prefix, char **ret, Error *reterr) {
        cleanup_free char *copy = strdup(prefix), *registry = NULL;
        char *slash;
        int r;

        if (!copy)
                return -ENOMEM;
        slash = strchr(copy, '/');
        if (slash)
                *slash++ = '\0';
        if (!is_domain(copy))
                return error_setf(reterr, EINVAL,
                                  "'%.256s' must start with a registry, such as docker.io or "
                                  "%.64s:443",
                                  prefix, copy);
        r = registry_name_normalise(copy, &registry, reterr);
        if (r < 0)
                return r;
        if (slash && !repository_path_is_valid(slash))
                return error_setf(reterr, EINVAL, "'%.256s' is not the path of a repository",
                                  slash);
        *ret = text_format("%s%s%s", registry, slash ? "/" : "", strna(slash));
        if (!*ret)
                return -ENOMEM;
        return 0;
}
