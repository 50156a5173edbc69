/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/signed-identity.h"

#include "agent/image-helper/document.h"

/* "example.com/team/app", "1", "sha256:…". */
typedef struct DockerName {
        char *name; /* owns the memory of the others */
        const char *tag, *digest;
} DockerName;

static void docker_name_done(DockerName *name) {
        free(name->name);
        *name = (DockerName){ 0 };
}

/* Completes "busybox" to "docker.io/library/busybox". No tag is added. */
static char *complete_docker_name(const char *text) {
        const char *slash = strchr(text, '/');
        size_t n = slash ? (size_t) (slash - text) : 0;
        bool has_host = slash && (strcspn(text, ".:") < n || strncmp(text, "localhost/", 10) == 0);
        char *whole;

        if (asprintf(&whole, "%s%s%s", has_host ? "" : "docker.io/",
                     has_host || slash ? "" : "library/", text) < 0)
                return NULL;
        return whole;
}

static int docker_name_parse(const char *text, DockerName *ret) {
        DockerName name = { .name = complete_docker_name(text) };
        char *at, *colon, *path;

        if (!name.name)
                return -ENOMEM;
        at = strchr(name.name, '@');
        if (at) {
                *at = '\0';
                name.digest = at + 1;
        }
        path = strchr(name.name, '/');
        colon = path ? strchr(path, ':') : NULL;
        if (colon) {
                *colon = '\0';
                name.tag = colon + 1;
        }
        *ret = name;
        return 0;
}

static bool is_same_reference(const DockerName *a, const DockerName *b) {
        return streq(a->name, b->name) && streq_ptr(a->tag, b->tag) &&
               streq_ptr(a->digest, b->digest);
}

static bool is_name_only(const DockerName *name) {
        return !name->tag && !name->digest;
}

static bool matches_exactly(const DockerName *image, const DockerName *signed_name) {
        return !is_name_only(image) && !is_name_only(signed_name) &&
               is_same_reference(image, signed_name);
}

/* The digest in a name was compared with what is signed already. */
static bool matches_digest_or_exactly(const DockerName *image, const DockerName *signed_name) {
        if (is_name_only(signed_name))
                return false;
        if (!image->tag && image->digest)
                return streq(image->name, signed_name->name);
        return matches_exactly(image, signed_name);
}

/* "prefix" matches whole components: "example.com/a" is not a prefix of "example.com/ab". */
static bool has_name_prefix(const char *name, const char *prefix) {
        size_t n = strlen(prefix);

        return strncmp(name, prefix, n) == 0 && (name[n] == '\0' || name[n] == '/');
}

static int remap_name(const json_t *identity, DockerName *image) {
        const char *prefix = document_string(identity, "prefix");
        const char *signed_prefix = document_string(identity, "signedPrefix");
        cleanup_free char *remapped = NULL;

        if (!has_name_prefix(image->name, strna(prefix)))
                return 0;
        if (asprintf(&remapped, "%s%s%s%s%s%s", strna(signed_prefix),
                     image->name + strlen(strna(prefix)), image->tag ? ":" : "", strna(image->tag),
                     image->digest ? "@" : "", strna(image->digest)) < 0) {
                remapped = NULL;
                return -ENOMEM;
        }
        docker_name_done(image);
        return docker_name_parse(remapped, image);
}

/* What the policy compares with: the image, or what it names itself. */
static int find_expected_name(const json_t *identity, const char *kind, const char *image,
                              DockerName *ret) {
        const char *text = image;
        int r;

        if (streq(kind, "exactReference"))
                text = document_string(identity, "dockerReference");
        else if (streq(kind, "exactRepository"))
                text = document_string(identity, "dockerRepository");
        r = docker_name_parse(strna(text), ret);
        if (r < 0)
                return r;
        if (ret->digest)
                ret->tag = NULL; /* a tag beside a digest says nothing */
        return streq(kind, "remapIdentity") ? remap_name(identity, ret) : 0;
}

static bool matches_kind(const char *kind, const DockerName *expected,
                         const DockerName *signed_name) {
        if (streq(kind, "matchRepository") || streq(kind, "exactRepository"))
                return streq(expected->name, signed_name->name);
        if (streq(kind, "matchExact") || streq(kind, "exactReference"))
                return matches_exactly(expected, signed_name);
        return matches_digest_or_exactly(expected, signed_name);
}

/* Only a digest is signed. */
static int check_without_name(const char *kind, const DockerName *image, Error *reterr) {
        if (streq(kind, "matchRepository") ||
            (streq(kind, "matchRepoDigestOrExact") && image->digest))
                return 0;
        return error_setf(
                reterr, EKEYREJECTED,
                "it is signed by its digest and without a name, as cosign 3 does, but the "
                "policy's signedIdentity is %s: name the image by its digest, or use "
                "matchRepository",
                kind);
}

int signed_identity_check(const json_t *identity, const char *image, const char *reference,
                          Error *reterr) {
        const char *type = document_string(identity, "type");
        const char *kind = type ? type : "matchRepoDigestOrExact";
        cleanup_with(docker_name_done) DockerName expected = { 0 }, signed_name = { 0 };
        int r = find_expected_name(identity, kind, image, &expected);

        if (r < 0)
                return r;
        if (!reference)
                return check_without_name(kind, &expected, reterr);
        r = docker_name_parse(reference, &signed_name);
        if (r < 0)
                return r;
        if (matches_kind(kind, &expected, &signed_name))
                return 0;
        return error_setf(reterr, EKEYREJECTED,
                          "it is signed as '%.300s', which %s does not accept for '%.300s%s%.128s'",
                          reference, kind, expected.name, expected.tag ? ":" : "",
                          strna(expected.tag));
}
