/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the security contexts of pod and container. As in the kubelet, a container's setting
 * overrides its pod's; capabilities are combined as in container engines. By default a container
 * gets the fourteen customary capabilities and the RuntimeDefault seccomp profile. */

#include "agent/bundle/resolved-security.h"

#include "agent/bundle/seccomp.h"
#include "agent/model/capability.h"
#include "agent/model/sysctl.h"
#include "common/app-armor.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/image-user.h"
#include "common/text.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>

#define DEFAULT_CAPABILITIES                                                                     \
        (CAPABILITY_BIT(CAP_CHOWN) | CAPABILITY_BIT(CAP_DAC_OVERRIDE) |                          \
         CAPABILITY_BIT(CAP_FSETID) | CAPABILITY_BIT(CAP_FOWNER) | CAPABILITY_BIT(CAP_MKNOD) |   \
         CAPABILITY_BIT(CAP_NET_RAW) | CAPABILITY_BIT(CAP_SETGID) | CAPABILITY_BIT(CAP_SETUID) | \
         CAPABILITY_BIT(CAP_SETFCAP) | CAPABILITY_BIT(CAP_SETPCAP) |                             \
         CAPABILITY_BIT(CAP_NET_BIND_SERVICE) | CAPABILITY_BIT(CAP_SYS_CHROOT) |                 \
         CAPABILITY_BIT(CAP_KILL) | CAPABILITY_BIT(CAP_AUDIT_WRITE))

/* ---- the user and its groups ---- */

static const OptionalInt *first_set_int(const OptionalInt *container, const OptionalInt *pod) {
        return container->is_set ? container : pod;
}

/* The kubelet's rule for an image's USER: a name that is not a number. */
static const char *non_numeric_user(const Image *image) {
        const char *user = image->user;

        if (!user || !user[0] || user[strspn(user, "0123456789")] == '\0' ||
            user[strspn(user, "0123456789")] == ':')
                return NULL;
        return user;
}

/* A numeric USER is known even if the image's user cannot be resolved. */
static bool runs_as_root(const Image *image) {
        const char *user = strna(image->user);

        user += strspn(user, "0");
        return image->uid == 0 && (user[0] == '\0' || user[0] == ':');
}

static int refuse_user(const RuntimeSpecInput *input, Error *reterr, const char *sentence) {
        const ObjectMeta *pod = &input->pod->metadata;

        return error_setf(reterr, BUNDLE_CONFIG_ERROR, "%s (pod: \"%s_%s(%s)\", container: %s)",
                          sentence, pod->name, pod->namespace, pod->uid, input->container->name);
}

static int check_non_root(const RuntimeSpecInput *input, const OptionalInt *user, Error *reterr) {
        const OptionalBool *own = &input->container->security_context.run_as_non_root;
        const OptionalBool *of_pod = &input->pod->spec.security_context.run_as_non_root;
        const char *name = non_numeric_user(input->image);
        cleanup_free char *sentence = NULL;

        if (!(own->is_set ? own->value : of_pod->value))
                return 0;
        if (user->is_set)
                return user->value != 0 ? 0
                                        : refuse_user(input, reterr,
                                                      "container's runAsUser breaks non-root "
                                                      "policy");
        if (name) {
                sentence = text_format(
                        "container has runAsNonRoot and image has non-numeric user (%.*s), "
                        "cannot verify user is non-root",
                        (int) strcspn(name, ":"), name);
                if (!sentence)
                        return -ENOMEM;
                return refuse_user(input, reterr, sentence);
        }
        if (!runs_as_root(input->image))
                return 0;
        return refuse_user(input, reterr, "container has runAsNonRoot and image will run as root");
}

static void add_supplemental_group(json_t *groups, int64_t gid) {
        json_t *group;
        size_t i;

        json_array_foreach(groups, i, group)
                if (json_integer_value(group) == gid)
                        return;
        json_array_append_new(groups, json_integer(gid));
}

/* supplementalGroups, fsGroup and, depending on supplementalGroupsPolicy, those of the image. */
static json_t *compose_supplemental_groups(const PodSecurityContext *context, gid_t gid,
                                           const gid_t *of_image, size_t n_of_image) {
        json_t *groups = json_array();

        /* Includes the primary group: a file that denies access to that group must not become
         * accessible by dropping the group. */
        add_supplemental_group(groups, gid);
        for (size_t i = 0; i < n_of_image; i++)
                if (context->supplemental_groups_policy != GROUPS_POLICY_STRICT)
                        add_supplemental_group(groups, of_image[i]);
        for (size_t i = 0; i < context->supplemental_groups.n; i++)
                add_supplemental_group(groups, context->supplemental_groups.items[i]);
        if (context->fs_group.is_set)
                add_supplemental_group(groups, context->fs_group.value);
        return groups;
}

/* The user and group to look up in the image: the pod's, otherwise the image's. */
static char *name_user(const OptionalInt *user, const OptionalInt *group, const Image *image) {
        char uid[24], gid[24];
        const char *name = strna(image->user);

        (void) snprintf(uid, sizeof(uid), "%" PRId64, user->value);
        (void) snprintf(gid, sizeof(gid), ":%" PRId64, group->value);
        return text_format("%.*s%s", user->is_set ? INT_MAX : (int) strcspn(name, ":"),
                           user->is_set ? uid : name, group->is_set ? gid : "");
}

static int find_user_in_image(const RuntimeSpecInput *input, const OptionalInt *user,
                              const OptionalInt *group, ImageUser *ret, Error *reterr) {
        cleanup_free char *name = name_user(user, group, input->image);
        cleanup_error Error error = ERROR_NULL;
        int r = name ? image_user_find_in_directories(name, input->image->layers, ret, &error)
                     : -ENOMEM;

        if (r == -EINVAL || r == -E2BIG)
                return error_setf(reterr, BUNDLE_CONFIG_ERROR, "%s", error_message(&error, r));
        return r < 0 ? error_setf(reterr, -r, "%s", error_message(&error, r)) : 0;
}

/* runAsUser and runAsGroup, otherwise the image's USER, which a pod that sets the user does not
 * need. */
static int resolve_user(const RuntimeSpecInput *input, const OptionalInt *user,
                        const OptionalInt *group, ImageUser *ret, Error *reterr) {
        const PodSecurityContext *of_pod = &input->pod->spec.security_context;
        const Image *image = input->image;

        if (user->is_set && group->is_set &&
            of_pod->supplemental_groups_policy == GROUPS_POLICY_STRICT) {
                *ret = (ImageUser){ .uid = (uid_t) user->value, .gid = (gid_t) group->value };
                return 0;
        }
        if (user->is_set || (group->is_set && image->user_error))
                return find_user_in_image(input, user, group, ret, reterr);
        if (image->user_error)
                return error_setf(reterr, BUNDLE_CONFIG_ERROR,
                                  "%s; runAsUser and runAsGroup of a securityContext override it",
                                  image->user_error);
        ret->groups = calloc(image->n_groups + 1, sizeof(gid_t));
        if (!ret->groups)
                return -ENOMEM;
        if (image->n_groups > 0)
                memcpy(ret->groups, image->groups, image->n_groups * sizeof(gid_t));
        ret->n_groups = image->n_groups;
        ret->uid = image->uid;
        ret->gid = group->is_set ? (gid_t) group->value : image->gid;
        return 0;
}

/* runAsUser, runAsGroup and runAsNonRoot, otherwise the image's USER. */
static int resolve_run_as_user(const RuntimeSpecInput *input, ContainerSecurity *security,
                               Error *reterr) {
        const SecurityContext *own = &input->container->security_context;
        const PodSecurityContext *of_pod = &input->pod->spec.security_context;
        const OptionalInt *user = first_set_int(&own->run_as_user, &of_pod->run_as_user);
        const OptionalInt *group = first_set_int(&own->run_as_group, &of_pod->run_as_group);
        cleanup_image_user ImageUser found = { 0 };
        int r;

        r = check_non_root(input, user, reterr);
        if (r < 0)
                return r;
        r = resolve_user(input, user, group, &found, reterr);
        if (r < 0)
                return r;
        security->uid = found.uid;
        security->gid = found.gid;
        security->groups =
                compose_supplemental_groups(of_pod, found.gid, found.groups, found.n_groups);
        return security->groups ? 0 : -ENOMEM;
}

/* ---- capabilities ---- */

static uint64_t named_capabilities(char *const *names, bool *ret_all) {
        uint64_t mask = 0;

        *ret_all = false;
        for (size_t i = 0; names && names[i]; i++) {
                int number = capability_from_name(names[i]);

                if (number >= 0)
                        mask |= CAPABILITY_BIT(number);
                else
                        *ret_all = *ret_all || capability_is_all(names[i]);
        }
        return mask;
}

/* A capability added by name must be available to the agent; a word such as ALL adds those that are
 * available. */
static int resolve_capabilities(const RuntimeSpecInput *input, ContainerSecurity *security,
                                Error *reterr) {
        const SecurityContext *context = &input->container->security_context;
        uint64_t ours = CAPABILITIES_ALL & ~input->config->missing_capabilities;
        uint64_t mask = DEFAULT_CAPABILITIES & ours, added, dropped;
        bool add_all, drop_all;

        added = named_capabilities(context->capabilities.add, &add_all);
        dropped = named_capabilities(context->capabilities.drop, &drop_all);
        if (context->privileged) {
                security->capabilities = ours;
                return 0;
        }
        for (int i = 0; i < N_CAPABILITIES; i++)
                if (added & ~ours & CAPABILITY_BIT(i))
                        return error_setf(reterr, EPERM,
                                          "%s cannot be added: this node's agent does not have it",
                                          capability_names[i]);
        if (add_all)
                mask = ours;
        if (drop_all)
                mask = 0;
        security->capabilities = (mask | added) & ~dropped;
        return 0;
}

json_t *capabilities_section(uint64_t capabilities) {
        json_t *list = json_array();

        for (int i = 0; i < N_CAPABILITIES; i++)
                if (capabilities & CAPABILITY_BIT(i))
                        json_array_append_new(list, json_string(capability_names[i]));
        return json_pack("{s:O, s:O, s:o}", "bounding", list, "effective", list, "permitted", list);
}

/* ---- profiles ---- */

static int load_localhost_seccomp(const RuntimeSpecInput *input, const char *path,
                                  SeccompProfile **ret, Error *reterr) {
        cleanup_free char *root = path_join(input->config->state_dir, "seccomp");
        cleanup_close int root_fd = -EBADF, fd = -EBADF;
        char fd_path[64];
        int r;

        if (!root)
                return -ENOMEM;
        root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        fd = root_fd < 0 ? -errno : open_beneath(root_fd, path, O_RDONLY | O_NONBLOCK, 0);
        if (fd < 0)
                return error_setf(reterr, -fd, "cannot open the seccomp profile %s/%s: %s", root,
                                  path, strerror(-fd));
        (void) snprintf(fd_path, sizeof(fd_path), "/proc/self/fd/%d", fd);
        r = seccomp_profile_load(AT_FDCWD, fd_path, ret, NULL);
        return r < 0 ? error_setf(reterr, -r, "cannot use the seccomp profile %s/%s: %s", root,
                                  path, r == -EINVAL ? "it is not a seccomp profile" : strerror(-r))
                     : 0;
}

/* A profile of an unknown type could be arbitrarily strict. */
static int refuse_unknown_profile(const char *kind, Error *reterr) {
        return error_setf(reterr, BUNDLE_CONFIG_ERROR,
                          "unknown %s profile type: this version of Mainstay knows RuntimeDefault, "
                          "Localhost and Unconfined",
                          kind);
}

/* seccompProfile of the container, otherwise of the pod, otherwise RuntimeDefault, as with
 * seccompDefault: true. */
static int resolve_seccomp(const RuntimeSpecInput *input, ContainerSecurity *security,
                           Error *reterr) {
        const SecurityProfile *profile = input->container->security_context.seccomp_profile;
        cleanup_with(seccomp_profile_freep) SeccompProfile *own = NULL;
        int r = 0;

        if (!profile)
                profile = input->pod->spec.security_context.seccomp_profile;
        if (security->is_privileged || (profile && profile->type == PROFILE_UNCONFINED))
                return 0;
        if (profile && profile->type == PROFILE_OTHER)
                return refuse_unknown_profile("seccomp", reterr);
        if (profile && profile->type == PROFILE_LOCALHOST && !profile->localhost_profile)
                return error_setf(reterr, EINVAL, "localhost profile name is empty");
        if (profile && profile->type == PROFILE_LOCALHOST)
                r = load_localhost_seccomp(input, profile->localhost_profile, &own, reterr);
        else if (!input->config->seccomp)
                r = seccomp_profile_builtin(&own);
        if (r < 0)
                return r;
        security->seccomp = seccomp_profile_resolve(own ? own : input->config->seccomp,
                                                    security->capabilities, input->config->has_x32);
        return security->seccomp ? 0 : -ENOMEM;
}

/* The runtime passes any name on to the kernel, for which "unconfined" and others mean no profile
 * at all. Pod Security allows Localhost, but not Unconfined. */
static int check_app_armor_profile(const BundleConfig *config, const char *name, Error *reterr) {
        cleanup_free char *mode = NULL;
        int r = app_armor_find_mode(strna(config->app_armor_profiles), name, &mode);

        if (r == -ENOENT)
                return error_setf(reterr, ENOENT,
                                  "Cannot enforce AppArmor: profile \"%s\" is not loaded", name);
        if (r < 0)
                return error_setf(reterr, -r, "Cannot enforce AppArmor: cannot read %s: %s",
                                  strna(config->app_armor_profiles), strerror(-r));
        if (streq(mode, "unconfined"))
                return error_setf(reterr, EPERM,
                                  "Cannot enforce AppArmor: profile \"%s\" confines nothing (%s); "
                                  "appArmorProfile.type Unconfined requests that",
                                  name, mode);
        return 0;
}

/* appArmorProfile of the container, otherwise of the pod, otherwise RuntimeDefault. */
static int resolve_app_armor(const RuntimeSpecInput *input, ContainerSecurity *security,
                             Error *reterr) {
        const SecurityProfile *profile = input->container->security_context.app_armor_profile;

        if (!profile)
                profile = input->pod->spec.security_context.app_armor_profile;
        if (security->is_privileged)
                return 0;
        if (!profile || profile->type == PROFILE_RUNTIME_DEFAULT) {
                security->app_armor_profile = input->config->app_armor_default;
                return 0;
        }
        if (profile->type == PROFILE_OTHER)
                return refuse_unknown_profile("AppArmor", reterr);
        if (!input->config->has_app_armor)
                return profile->type == PROFILE_UNCONFINED
                               ? 0
                               : error_setf(reterr, ENOTSUP,
                                            "Cannot enforce AppArmor: AppArmor is not enabled on "
                                            "the host");
        if (profile->type == PROFILE_UNCONFINED) {
                security->app_armor_profile = "unconfined";
                return 0;
        }
        security->app_armor_profile = strna(profile->localhost_profile);
        return check_app_armor_profile(input->config, security->app_armor_profile, reterr);
}

/* ---- resolving ---- */

void container_security_done(ContainerSecurity *security) {
        json_decref(security->groups);
        json_decref(security->seccomp);
        *security = (ContainerSecurity){ 0 };
}

/* privileged, allowPrivilegeEscalation, readOnlyRootFilesystem; users, capabilities, profiles. */
int resolve_container_security(const RuntimeSpecInput *input, ContainerSecurity *ret,
                               Error *reterr) {
        const SecurityContext *context = &input->container->security_context;
        cleanup_with(container_security_done) ContainerSecurity security = {
                .is_privileged = context->privileged,
                .no_new_privileges = context->allow_privilege_escalation.is_set &&
                                     !context->allow_privilege_escalation.value,
                .has_read_only_root = context->read_only_root_filesystem,
        };
        int r;

        r = resolve_run_as_user(input, &security, reterr);
        if (r < 0)
                return r;
        r = resolve_capabilities(input, &security, reterr);
        if (r < 0)
                return r;
        r = resolve_seccomp(input, &security, reterr);
        if (r < 0)
                return r;
        r = resolve_app_armor(input, &security, reterr);
        if (r < 0)
                return r;
        *ret = security;
        security = (ContainerSecurity){ 0 };
        return 0;
}

/* ---- sysctls ---- */

/* The safe sysctls and those in allowedUnsafeSysctls; a pod with others is rejected
 * (SysctlForbidden). */
int pod_check_sysctls(const BundleConfig *config, const PodSpec *spec, Error *reterr) {
        for (size_t i = 0; i < spec->security_context.sysctls.n; i++) {
                char name[SYSCTL_NAME_SIZE];

                sysctl_dotted(spec->security_context.sysctls.items[i].name, name);
                if (!sysctl_is_safe(name) &&
                    !sysctl_is_listed(name, config->allowed_unsafe_sysctls))
                        return error_setf(reterr, EPERM, "forbidden sysctl: \"%s\" not allowlisted",
                                          name);
                if (strchr(strna(spec->security_context.sysctls.items[i].value), '\n'))
                        return error_setf(reterr, EPERM,
                                          "forbidden sysctl: \"%s\" has a value of several lines",
                                          name);
        }
        return 0;
}

char *pod_sysctls(const PodSpec *spec) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < spec->security_context.sysctls.n; i++)
                (void) fprintf(out, "%s = %s\n", spec->security_context.sysctls.items[i].name,
                               strna(spec->security_context.sysctls.items[i].value));
        if (fclose(out) != 0) {
                free(text);
                return NULL;
        }
        return text;
}
