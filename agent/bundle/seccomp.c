/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves seccomp profiles. A profile is kept as text, a tenth of the size of its document;
 * resolving parses it and walks some forty rules per container, so nothing is cached. */

#include "agent/bundle/seccomp.h"

#include "agent/model/capability.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/log.h"

#include <fcntl.h>
#include <sys/utsname.h>

enum {
        PROFILE_BYTES_MAX = 1024 * 1024,
};

/* The names of the architecture of this build: in the profiles' lists (Go's names) and in
 * libseccomp. */
#if defined(__x86_64__)
#define ARCHITECTURE      "amd64"
#define SCMP_ARCHITECTURE "SCMP_ARCH_X86_64"
#elif defined(__i386__)
#define ARCHITECTURE      "x86"
#define SCMP_ARCHITECTURE "SCMP_ARCH_X86"
#elif defined(__aarch64__)
#define ARCHITECTURE      "arm64"
#define SCMP_ARCHITECTURE "SCMP_ARCH_AARCH64"
#elif defined(__arm__)
#define ARCHITECTURE      "arm"
#define SCMP_ARCHITECTURE "SCMP_ARCH_ARM"
#elif defined(__powerpc64__)
#define ARCHITECTURE      "ppc64le"
#define SCMP_ARCHITECTURE "SCMP_ARCH_PPC64LE"
#elif defined(__s390x__)
#define ARCHITECTURE      "s390x"
#define SCMP_ARCHITECTURE "SCMP_ARCH_S390X"
#elif defined(__riscv)
#define ARCHITECTURE      "riscv64"
#define SCMP_ARCHITECTURE "SCMP_ARCH_RISCV64"
#endif

/* A profile from a file has one of these two members, the built-in one has neither. */
struct SeccompProfile {
        json_t *root;
        char *text; /* JSON without spaces, which uses a fraction of the memory */
};

SeccompProfile *seccomp_profile_free(SeccompProfile *profile) {
        if (!profile)
                return NULL;
        json_decref(profile->root);
        free(profile->text);
        free(profile);
        return NULL;
}

int seccomp_profile_builtin(SeccompProfile **ret) {
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

static int profile_new(json_t *root, SeccompProfile **ret) {
        int r = seccomp_profile_builtin(ret);

        if (r >= 0)
                (*ret)->root = json_incref(root);
        return r;
}

/* Compacts a profile that is kept. */
static int compact_profile(SeccompProfile *profile) {
        profile->text = json_to_text(profile->root, JSON_COMPACT);
        if (!profile->text)
                return -ENOMEM;
        json_decref(TAKE_PTR(profile->root));
        return 0;
}

/* NULL: out of memory. */
static json_t *profile_document(const SeccompProfile *profile) {
        unsigned failures = json_failed_allocations();
        json_t *root = NULL;

        if (profile->root)
                return json_incref(profile->root);
        if (profile->text) {
                (void) json_parse_text(profile->text, strlen(profile->text), 0, &root, NULL);
                return root;
        }
        root = seccomp_builtin_profile_json();
        if (json_failed_allocations() == failures)
                return root;
        json_decref(root); /* some of its rules are missing */
        return NULL;
}

int seccomp_profile_load(int dir_fd, const char *path, SeccompProfile **ret, Error *reterr) {
        cleanup_free char *text = NULL;
        cleanup_json json_t *root = NULL;
        json_error_t error;
        size_t length;
        int r;

        r = read_file_at(dir_fd, path, PROFILE_BYTES_MAX, &text, &length);
        if (r < 0)
                return error_setf(reterr, -r, "cannot read the seccomp profile '%s': %s", path,
                                  strerror(-r));
        r = json_parse_text(text, length, JSON_REJECT_DUPLICATES, &root, &error);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return error_setf(reterr, EINVAL,
                                  "the seccomp profile '%s' is not valid JSON: %d:%d: %s", path,
                                  error.line, error.column, error.text);
        if (!json_text(root, "defaultAction"))
                return error_setf(reterr, EINVAL, "the seccomp profile '%s' has no defaultAction",
                                  path);
        return profile_new(root, ret);
}

static int load_kept_profile(const char *path, SeccompProfile **ret, Error *reterr) {
        cleanup_with(seccomp_profile_freep) SeccompProfile *profile = NULL;
        int r = seccomp_profile_load(AT_FDCWD, path, &profile, reterr);

        if (r < 0)
                return r;
        r = compact_profile(profile);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(profile);
        return 0;
}

static bool has_capability(uint64_t capabilities, const json_t *name) {
        int number = capability_from_name(strna(json_string_value(name)));

        return number >= 0 && (capabilities & CAPABILITY_BIT(number));
}

static bool has_native_architecture(const json_t *names) {
        json_t *name;
        size_t i;

        json_array_foreach(names, i, name)
                if (streq(strna(json_string_value(name)), ARCHITECTURE))
                        return true;
        return false;
}

/* "4.8" */
static bool kernel_is_at_least(const char *version) {
        struct utsname uts;
        char *minor, *own_minor;
        long wanted = strtol(version, &minor, 10), own;

        if (uname(&uts) < 0)
                return false;
        own = strtol(uts.release, &own_minor, 10);
        if (own != wanted)
                return own > wanted;
        return (*own_minor ? strtol(own_minor + 1, NULL, 10) : 0) >=
               (*minor ? strtol(minor + 1, NULL, 10) : 0);
}

static bool is_seccomp_rule_included(const json_t *conditions, uint64_t capabilities) {
        const json_t *arches = json_object_get(conditions, "arches");
        const char *kernel = json_text(conditions, "minKernel");
        json_t *name;
        size_t i;

        json_array_foreach(json_object_get(conditions, "caps"), i, name)
                if (!has_capability(capabilities, name))
                        return false;
        if (json_array_size(arches) > 0 && !has_native_architecture(arches))
                return false;
        return !kernel || kernel_is_at_least(kernel);
}

static bool is_seccomp_rule_excluded(const json_t *conditions, uint64_t capabilities) {
        const char *kernel = json_text(conditions, "minKernel");
        json_t *name;
        size_t i;

        json_array_foreach(json_object_get(conditions, "caps"), i, name)
                if (has_capability(capabilities, name))
                        return true;
        if (has_native_architecture(json_object_get(conditions, "arches")))
                return true;
        return kernel && kernel_is_at_least(kernel);
}

/* The members of a rule that the runtime specification also has. */
static json_t *resolve_seccomp_rule(const json_t *rule) {
        static const char *const keys[] = { "names", "action", "args", "errnoRet" };
        json_t *result = json_object();

        for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
                json_t *value = json_object_get(rule, keys[i]);

                if (value && !json_is_null(value) &&
                    !(json_is_array(value) && json_array_size(value) == 0))
                        json_object_set(result, keys[i], value);
        }
        /* The format of older profiles. */
        if (!json_object_get(result, "names") && json_object_get(rule, "name"))
                json_object_set_new(result, "names",
                                    json_pack("[O]", json_object_get(rule, "name")));
        return result;
}

static json_t *resolve_seccomp_rules(const json_t *rules, uint64_t capabilities) {
        json_t *result = json_array(), *rule;
        size_t i;

        json_array_foreach(rules, i, rule)
                if (is_seccomp_rule_included(json_object_get(rule, "includes"), capabilities) &&
                    !is_seccomp_rule_excluded(json_object_get(rule, "excludes"), capabilities))
                        json_array_append_new(result, resolve_seccomp_rule(rule));
        return result;
}

/* The native architecture and those that it also runs, such as that of 32-bit programs on a 64-bit
 * machine. */
static json_t *native_architectures(const json_t *arch_map, bool x32) {
        json_t *entry, *other, *result = NULL;
        size_t i, j;

        json_array_foreach(arch_map, i, entry) {
                json_t *name = json_object_get(entry, "architecture");

                if (result || !streq(strna(json_string_value(name)), SCMP_ARCHITECTURE))
                        continue;
                result = json_pack("[O]", name);
                json_array_foreach(json_object_get(entry, "subArchitectures"), j, other)
                        if (x32 || !streq(strna(json_string_value(other)), "SCMP_ARCH_X32"))
                                json_array_append(result, other);
        }
        return result;
}

static json_t *resolve_architectures(const json_t *root, bool x32) {
        json_t *listed = json_object_get(root, "architectures");

        return json_array_size(listed) > 0
                       ? json_incref(listed)
                       : native_architectures(json_object_get(root, "archMap"), x32);
}

json_t *seccomp_profile_resolve(const SeccompProfile *profile, uint64_t capabilities, bool x32) {
        static const char *const keys[] = { "defaultAction", "defaultErrnoRet", "flags" };
        json_t *root = profile_document(profile), *result, *architectures;
        int r;

        if (!root)
                return NULL;
        result = json_object();
        architectures = resolve_architectures(root, x32);
        for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
                json_t *value = json_object_get(root, keys[i]);

                if (value && !json_is_null(value))
                        json_object_set(result, keys[i], value);
        }
        if (architectures)
                json_object_set_new(result, "architectures", architectures);
        r = json_object_set_new(
                result, "syscalls",
                resolve_seccomp_rules(json_object_get(root, "syscalls"), capabilities));
        json_decref(root);
        if (r >= 0)
                return result;
        json_decref(result);
        return NULL;
}

int seccomp_profile_load_first(const char *const *paths, SeccompProfile **ret) {
        for (; *paths; paths++) {
                cleanup_error Error error = ERROR_NULL;
                int r = load_kept_profile(*paths, ret, &error);

                if (r >= 0)
                        return 0;
                if (r != -ENOENT) {
                        log_warning("Using the built-in seccomp profile: %s",
                                    error_message(&error, r));
                        break;
                }
        }
        return seccomp_profile_builtin(ret);
}

int seccomp_profile_load_default(const char *path, SeccompProfile **ret, Error *reterr) {
        static const char *const places[] = { "/etc/containers/seccomp.json",
                                              "/usr/share/containers/seccomp.json", NULL };

        if (!path)
                return seccomp_profile_load_first(places, ret);
        if (streq(path, "builtin"))
                return seccomp_profile_builtin(ret);
        return load_kept_profile(path, ret, reterr);
}
