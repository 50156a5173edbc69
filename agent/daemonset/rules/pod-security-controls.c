/* SPDX-License-Identifier: Apache-2.0 */

/* The controls of the Pod Security Standards; see the header. */

#include "agent/daemonset/rules/pod-security-controls.h"

#include "agent/model/containers.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>
#include <stdlib.h>

/* ---- findings ---- */

/* The findings of one control. */
typedef struct Finding {
        PodSecurityReview *review;
        bool is_in_pod;    /* found in the pod's own settings */
        char **containers; /* names of the containers in which it was found */
        char **values;     /* values that are not allowed: sorted, without duplicates */
} Finding;

static void finding_done(Finding *finding) {
        strv_free(finding->containers);
        strv_free(finding->values);
}
#define CLEANUP_FINDING cleanup_with(finding_done) Finding

static void add_name(Finding *finding, char ***names, const char *name) {
        if (strv_append(names, strna(name)) < 0)
                finding->review->has_failed = true;
}

static int compare_finding_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static void sort_names(char **names) {
        if (names)
                qsort(names, strv_length(names), sizeof(*names), compare_finding_names);
}

static void add_value(Finding *finding, const char *value) {
        if (strv_contains(finding->values, strna(value)))
                return;
        add_name(finding, &finding->values, value);
        sort_names(finding->values);
}

/* True if the container violates the control; adds the offending values. */
typedef bool (*container_check_t)(const Container *container, Finding *finding);

static void find_containers(Finding *finding, container_check_t violates) {
        const Container *container;

        pod_foreach_container(container, &finding->review->pod->spec)
                if (violates(container, finding))
                        add_name(finding, &finding->containers, container->name);
}

static bool has_findings(const Finding *finding) {
        return finding->is_in_pod || finding->containers;
}

/* ---- output ---- */

static FILE *begin_violation(PodSecurityReview *review, const char *reason) {
        fprintf(review->out, "%s%s (", review->n_violations++ > 0 ? ", " : "", reason);
        return review->out;
}

static void print_names(FILE *out, char *const *names, const char *quote) {
        for (size_t i = 0; names && names[i]; i++)
                fprintf(out, "%s%s%s%s", i > 0 ? ", " : "", quote, names[i], quote);
}

static const char *plural_of(char *const *names) {
        return strv_length(names) == 1 ? "" : "s";
}

/* 'containers "a", "b"' */
static void print_containers(FILE *out, char *const *names) {
        fprintf(out, "container%s ", plural_of(names));
        print_names(out, names, "\"");
}

/* 'pod and container "a"' */
static void print_subject(FILE *out, const Finding *finding) {
        if (finding->is_in_pod)
                fprintf(out, "pod%s", finding->containers ? " and " : "");
        if (finding->containers)
                print_containers(out, finding->containers);
}

/* "reason (subject predicate values)"; nothing if there are no findings. */
static void report_findings(const Finding *finding, const char *reason, const char *predicate) {
        FILE *out;

        if (!has_findings(finding))
                return;
        out = begin_violation(finding->review, reason);
        print_subject(out, finding);
        fprintf(out, " %s%s", predicate, finding->values ? " " : "");
        print_names(out, finding->values, "\"");
        fputc(')', out);
}

/* ---- which pods ---- */

static bool is_for_windows(const PodSecurityReview *review) {
        const PodOs *os = review->pod->spec.os;

        return review->minor >= 25 && os && os->name == OS_WINDOWS;
}

static bool is_relaxed_for_own_users(const PodSecurityReview *review) {
        return review->minor >= 35 && pod_has_own_users(&review->pod->spec);
}

/* ---- AppArmor ---- */

static bool is_bad_app_armor_profile(const SecurityProfile *profile, Finding *finding) {
        if (!profile || profile->type == PROFILE_RUNTIME_DEFAULT ||
            profile->type == PROFILE_LOCALHOST)
                return false;
        add_value(finding, profile_type_names[profile->type]);
        return true;
}

static bool has_bad_app_armor_profile(const Container *container, Finding *finding) {
        return is_bad_app_armor_profile(container->security_context.app_armor_profile, finding);
}

static bool is_allowed_app_armor_annotation(const char *value) {
        return !value[0] || streq(value, "runtime/default") ||
               strncmp(value, "localhost/", strlen("localhost/")) == 0;
}

/* 'key="value"' for each one, sorted by key like all annotations. */
static char **find_app_armor_annotations(Finding *finding) {
        static const char prefix[] = "container.apparmor.security.beta.kubernetes.io/";
        const StringMap *annotations = &finding->review->pod->metadata.annotations;
        char **found = NULL;

        for (size_t i = 0; i < annotations->n; i++) {
                const KeyValue *pair = &annotations->items[i];

                if (strncmp(pair->key, prefix, strlen(prefix)) == 0 &&
                    !is_allowed_app_armor_annotation(pair->value) &&
                    strv_appendf(&found, "%s=\"%s\"", pair->key, pair->value) < 0)
                        finding->review->has_failed = true;
        }
        return found;
}

void check_app_armor_profiles(PodSecurityReview *review) {
        CLEANUP_FINDING finding = { .review = review };
        cleanup_strv char **annotations = NULL;
        FILE *out;

        finding.is_in_pod = is_bad_app_armor_profile(
                review->pod->spec.security_context.app_armor_profile, &finding);
        find_containers(&finding, has_bad_app_armor_profile);
        annotations = find_app_armor_annotations(&finding);
        if (!has_findings(&finding) && !annotations)
                return;
        if (strv_extend(&finding.values, annotations) < 0)
                review->has_failed = true;
        out = begin_violation(review, strv_length(finding.values) == 1
                                              ? "forbidden AppArmor profile"
                                              : "forbidden AppArmor profiles");
        print_subject(out, &finding);
        if (annotations)
                fprintf(out, "%sannotation%s", has_findings(&finding) ? " and " : "",
                        plural_of(annotations));
        fprintf(out, " must not set AppArmor profile type to ");
        print_names(out, finding.values, "\"");
        fputc(')', out);
}

/* ---- capabilities ---- */

static bool adds_capabilities(const Container *container, Finding *finding) {
        static const char *const defaults[] = {
                "AUDIT_WRITE", "CHOWN",  "DAC_OVERRIDE", "FOWNER", "FSETID",
                "KILL",        "MKNOD",  "SETFCAP",      "SETGID", "NET_BIND_SERVICE",
                "SETPCAP",     "SETUID", "SYS_CHROOT",
        };
        bool is_bad = false;

        strv_foreach(added, container->security_context.capabilities.add) {
                bool is_default = false;

                for (size_t i = 0; i < N_ELEMENTS(defaults); i++)
                        is_default = is_default || streq(*added, defaults[i]);
                if (is_default)
                        continue;
                add_value(finding, *added);
                is_bad = true;
        }
        return is_bad;
}

static void print_added_capabilities(FILE *out, const Finding *finding) {
        print_containers(out, finding->containers);
        fprintf(out, " must not include ");
        print_names(out, finding->values, "\"");
        fprintf(out, " in securityContext.capabilities.add");
}

void check_added_capabilities(PodSecurityReview *review) {
        CLEANUP_FINDING finding = { .review = review };

        find_containers(&finding, adds_capabilities);
        if (!has_findings(&finding))
                return;
        print_added_capabilities(begin_violation(review, "non-default capabilities"), &finding);
        fputc(')', review->out);
}

static bool drops_not_all_capabilities(const Container *container, Finding *finding) {
        return !strv_contains(container->security_context.capabilities.drop, "ALL");
}

static bool adds_restricted_capabilities(const Container *container, Finding *finding) {
        bool is_bad = false;

        strv_foreach(added, container->security_context.capabilities.add) {
                if (streq(*added, "NET_BIND_SERVICE"))
                        continue;
                add_value(finding, *added);
                is_bad = true;
        }
        return is_bad;
}

void check_dropped_capabilities(PodSecurityReview *review) {
        CLEANUP_FINDING keeping = { .review = review };
        CLEANUP_FINDING adding = { .review = review };
        FILE *out;

        if (is_for_windows(review))
                return;
        find_containers(&keeping, drops_not_all_capabilities);
        find_containers(&adding, adds_restricted_capabilities);
        if (!has_findings(&keeping) && !has_findings(&adding))
                return;
        out = begin_violation(review, "unrestricted capabilities");
        if (has_findings(&keeping)) {
                print_containers(out, keeping.containers);
                fprintf(out, " must set securityContext.capabilities.drop=[\"ALL\"]%s",
                        has_findings(&adding) ? "; " : "");
        }
        if (has_findings(&adding))
                print_added_capabilities(out, &adding);
        fputc(')', out);
}

/* ---- the host's namespaces, paths and ports ---- */

void check_host_namespaces(PodSecurityReview *review) {
        const PodSpec *spec = &review->pod->spec;
        CLEANUP_FINDING finding = { .review = review };

        if (spec->host_network)
                add_name(&finding, &finding.values, "hostNetwork=true");
        if (spec->host_pid)
                add_name(&finding, &finding.values, "hostPID=true");
        if (spec->host_ipc)
                add_name(&finding, &finding.values, "hostIPC=true");
        if (!finding.values)
                return;
        print_names(begin_violation(review, "host namespaces"), finding.values, "");
        fputc(')', review->out);
}

void check_host_path_volumes(PodSecurityReview *review) {
        const PodSpec *spec = &review->pod->spec;
        CLEANUP_FINDING finding = { .review = review };
        FILE *out;

        for (size_t i = 0; i < spec->volumes.n; i++)
                if (spec->volumes.items[i].host_path)
                        add_name(&finding, &finding.values, spec->volumes.items[i].name);
        if (!finding.values)
                return;
        out = begin_violation(review, "hostPath volumes");
        fprintf(out, "volume%s ", plural_of(finding.values));
        print_names(out, finding.values, "\"");
        fputc(')', out);
}

static bool uses_host_port(const Container *container, Finding *finding) {
        bool is_bad = false;

        for (size_t i = 0; i < container->ports.n; i++) {
                const OptionalInt *port = &container->ports.items[i].host_port;
                char text[24];

                if (!port->is_set || port->value == 0)
                        continue;
                (void) snprintf(text, sizeof(text), "%lld", (long long) port->value);
                add_value(finding, text);
                is_bad = true;
        }
        return is_bad;
}

/* "uses" for one container, "use" for several. */
static void print_uses(FILE *out, const Finding *finding) {
        print_containers(out, finding->containers);
        fprintf(out, " use%s ", strv_length(finding->containers) == 1 ? "s" : "");
}

void check_ports_of_host(PodSecurityReview *review) {
        CLEANUP_FINDING finding = { .review = review };
        FILE *out;

        find_containers(&finding, uses_host_port);
        if (!has_findings(&finding))
                return;
        out = begin_violation(review, "hostPort");
        print_uses(out, &finding);
        fprintf(out, "hostPort%s ", plural_of(finding.values));
        print_names(out, finding.values, "");
        fputc(')', out);
}

/* ---- probes and hooks ---- */

static bool has_handler_host(const Handler *handler, Finding *finding) {
        const char *hosts[] = {
                handler && handler->http_get ? handler->http_get->host : NULL,
                handler && handler->tcp_socket ? handler->tcp_socket->host : NULL,
        };
        bool is_bad = false;

        for (size_t i = 0; i < N_ELEMENTS(hosts); i++) {
                if (!hosts[i] || !hosts[i][0])
                        continue;
                add_value(finding, hosts[i]);
                is_bad = true;
        }
        return is_bad;
}

static bool has_handler_hosts(const Container *container, Finding *finding) {
        const Lifecycle *lifecycle = container->lifecycle;
        const Probe *probes[] = { container->liveness_probe, container->readiness_probe,
                                  container->startup_probe };
        bool is_bad = false;

        for (size_t i = 0; i < N_ELEMENTS(probes); i++)
                if (has_handler_host(probes[i] ? &probes[i]->handler : NULL, finding))
                        is_bad = true;
        if (lifecycle && has_handler_host(lifecycle->post_start, finding))
                is_bad = true;
        if (lifecycle && has_handler_host(lifecycle->pre_stop, finding))
                is_bad = true;
        return is_bad;
}

void check_handler_hosts(PodSecurityReview *review) {
        CLEANUP_FINDING finding = { .review = review };
        FILE *out;

        find_containers(&finding, has_handler_hosts);
        if (!has_findings(&finding))
                return;
        sort_names(finding.containers);
        out = begin_violation(review, "probe or lifecycle host");
        print_uses(out, &finding);
        fprintf(out, "probe or lifecycle host%s ", plural_of(finding.values));
        print_names(out, finding.values, "\"");
        fputc(')', out);
}

/* ---- privileges ---- */

static bool is_privileged(const Container *container, Finding *finding) {
        return container->security_context.privileged;
}

void check_privileged_containers(PodSecurityReview *review) {
        CLEANUP_FINDING finding = { .review = review };

        find_containers(&finding, is_privileged);
        report_findings(&finding, "privileged", "must not set securityContext.privileged=true");
}

static bool allows_privilege_escalation(const Container *container, Finding *finding) {
        const OptionalBool *allows = &container->security_context.allow_privilege_escalation;

        return !allows->is_set || allows->value;
}

void check_privilege_escalation(PodSecurityReview *review) {
        CLEANUP_FINDING finding = { .review = review };

        if (is_for_windows(review))
                return;
        find_containers(&finding, allows_privilege_escalation);
        report_findings(&finding, "allowPrivilegeEscalation != false",
                        "must set securityContext.allowPrivilegeEscalation=false");
}

static bool has_other_proc_mount(const Container *container, Finding *finding) {
        ProcMount mount = container->security_context.proc_mount;

        if (mount == PROC_MOUNT_UNSET || mount == PROC_MOUNT_DEFAULT)
                return false;
        add_value(finding, proc_mount_names[mount]);
        return true;
}

void check_proc_mounts_of_all(PodSecurityReview *review) {
        CLEANUP_FINDING finding = { .review = review };

        find_containers(&finding, has_other_proc_mount);
        report_findings(&finding, "procMount", "must not set securityContext.procMount to");
}

void check_proc_mounts(PodSecurityReview *review) {
        if (!is_relaxed_for_own_users(review))
                check_proc_mounts_of_all(review);
}

static bool is_host_process(const Container *container, Finding *finding) {
        return container->security_context.windows_options.host_process;
}

void check_windows_host_process(PodSecurityReview *review) {
        CLEANUP_FINDING finding = { .review = review };

        finding.is_in_pod = review->pod->spec.security_context.windows_options.host_process;
        find_containers(&finding, is_host_process);
        report_findings(&finding, "hostProcess",
                        "must not set securityContext.windowsOptions.hostProcess=true");
}

/* ---- SELinux ---- */

/* Flags in Finding.values in addition to the types. */
typedef struct SeLinuxFinding {
        Finding finding;
        bool sets_user, sets_role;
} SeLinuxFinding;

static bool is_allowed_se_linux_type(const char *type, unsigned minor) {
        return !type || !type[0] || streq(type, "container_t") || streq(type, "container_init_t") ||
               streq(type, "container_kvm_t") || (minor >= 31 && streq(type, "container_engine_t"));
}

static bool is_set(const char *text) {
        return text && text[0];
}

static bool has_bad_options(const SeLinuxOptions *options, SeLinuxFinding *found) {
        bool has_bad_type;

        if (!options)
                return false;
        has_bad_type = !is_allowed_se_linux_type(options->type, found->finding.review->minor);
        if (has_bad_type)
                add_value(&found->finding, options->type);
        found->sets_user = found->sets_user || is_set(options->user);
        found->sets_role = found->sets_role || is_set(options->role);
        return has_bad_type || is_set(options->user) || is_set(options->role);
}

static bool has_bad_se_linux_options(const Container *container, Finding *finding) {
        SeLinuxFinding *found = (SeLinuxFinding *) finding; /* its first member */

        return has_bad_options(container->security_context.se_linux_options, found);
}

void check_se_linux_options(PodSecurityReview *review) {
        SeLinuxFinding found = { .finding = { .review = review } };
        Finding *finding = &found.finding;
        const char *separator = "";
        FILE *out;

        finding->is_in_pod =
                has_bad_options(review->pod->spec.security_context.se_linux_options, &found);
        find_containers(finding, has_bad_se_linux_options);
        if (has_findings(finding)) {
                out = begin_violation(review, "seLinuxOptions");
                print_subject(out, finding);
                fprintf(out, " set forbidden securityContext.seLinuxOptions: ");
                if (finding->values) {
                        fprintf(out, "type%s ", plural_of(finding->values));
                        print_names(out, finding->values, "\"");
                        separator = "; ";
                }
                if (found.sets_user) {
                        fprintf(out, "%suser may not be set", separator);
                        separator = "; ";
                }
                if (found.sets_role)
                        fprintf(out, "%srole may not be set", separator);
                fputc(')', out);
        }
        finding_done(finding);
}

/* ---- seccomp ---- */

static bool is_good_seccomp_profile(const SecurityProfile *profile) {
        return profile->type == PROFILE_RUNTIME_DEFAULT || profile->type == PROFILE_LOCALHOST;
}

static bool is_bad_seccomp_profile(const SecurityProfile *profile, Finding *finding) {
        if (!profile || is_good_seccomp_profile(profile))
                return false;
        add_value(finding, profile_type_names[profile->type]);
        return true;
}

static bool has_bad_seccomp_profile(const Container *container, Finding *finding) {
        return is_bad_seccomp_profile(container->security_context.seccomp_profile, finding);
}

static bool is_allowed_seccomp_annotation(const char *value) {
        return streq(value, "runtime/default") || streq(value, "docker/default") ||
               strncmp(value, "localhost/", strlen("localhost/")) == 0;
}

static void find_seccomp_annotation(Finding *finding, const char *prefix, const char *name) {
        cleanup_free char *key = NULL, *text = NULL;
        const char *value;

        key = text_format("%s%s", prefix, name);
        if (!key) {
                finding->review->has_failed = true;
                return;
        }
        value = string_map_get(&finding->review->pod->metadata.annotations, key);
        if (!value || is_allowed_seccomp_annotation(value))
                return;
        text = text_format("%s=\"%s\"", key, value);
        if (!text) {
                finding->review->has_failed = true;
                return;
        }
        add_value(finding, text);
}

/* Before version 1.19 the profile was an annotation. */
static void check_seccomp_annotations(PodSecurityReview *review) {
        CLEANUP_FINDING finding = { .review = review };
        const Container *container;
        FILE *out;

        find_seccomp_annotation(&finding, "seccomp.security.alpha.kubernetes.io/pod", "");
        pod_foreach_container(container, &review->pod->spec)
                find_seccomp_annotation(&finding, "container.seccomp.security.alpha.kubernetes.io/",
                                        strna(container->name));
        if (!finding.values)
                return;
        out = begin_violation(review, "seccompProfile");
        fprintf(out, "forbidden annotation%s ", plural_of(finding.values));
        print_names(out, finding.values, "");
        fputc(')', out);
}

static void find_bad_seccomp_profiles(Finding *finding) {
        finding->is_in_pod = is_bad_seccomp_profile(
                finding->review->pod->spec.security_context.seccomp_profile, finding);
        find_containers(finding, has_bad_seccomp_profile);
}

static void report_bad_seccomp_profiles(const Finding *finding) {
        report_findings(finding, "seccompProfile",
                        "must not set securityContext.seccompProfile.type to");
}

void check_seccomp_profiles(PodSecurityReview *review) {
        CLEANUP_FINDING finding = { .review = review };

        if (review->minor < 19) {
                check_seccomp_annotations(review);
                return;
        }
        find_bad_seccomp_profiles(&finding);
        report_bad_seccomp_profiles(&finding);
}

static bool has_no_seccomp_profile(const Container *container, Finding *finding) {
        return !container->security_context.seccomp_profile;
}

void check_required_seccomp_profiles(PodSecurityReview *review) {
        const SecurityProfile *of_pod = review->pod->spec.security_context.seccomp_profile;
        CLEANUP_FINDING finding = { .review = review };
        CLEANUP_FINDING missing = { .review = review };

        if (is_for_windows(review))
                return;
        find_bad_seccomp_profiles(&finding);
        report_bad_seccomp_profiles(&finding);
        if (has_findings(&finding) || (of_pod && is_good_seccomp_profile(of_pod)))
                return;
        find_containers(&missing, has_no_seccomp_profile);
        if (!has_findings(&missing))
                return;
        fprintf(begin_violation(review, "seccompProfile"), "pod or ");
        print_containers(review->out, missing.containers);
        fprintf(review->out, " must set securityContext.seccompProfile.type to \"RuntimeDefault\" "
                             "or \"Localhost\")");
}

/* ---- sysctls ---- */

static bool is_allowed_sysctl(const char *name, unsigned minor) {
        static const struct {
                const char *name;
                unsigned since;
        } allowed[] = {
                { "kernel.shm_rmid_forced", 0 },
                { "net.ipv4.ip_local_port_range", 0 },
                { "net.ipv4.ip_unprivileged_port_start", 0 },
                { "net.ipv4.ping_group_range", 0 },
                { "net.ipv4.tcp_syncookies", 0 },
                { "net.ipv4.ip_local_reserved_ports", 27 },
                { "net.ipv4.tcp_fin_timeout", 29 },
                { "net.ipv4.tcp_keepalive_intvl", 29 },
                { "net.ipv4.tcp_keepalive_probes", 29 },
                { "net.ipv4.tcp_keepalive_time", 29 },
                { "net.ipv4.tcp_rmem", 32 },
                { "net.ipv4.tcp_wmem", 32 },
        };

        for (size_t i = 0; i < N_ELEMENTS(allowed); i++)
                if (streq(name, allowed[i].name))
                        return minor >= allowed[i].since;
        return false;
}

void check_sysctls(PodSecurityReview *review) {
        const PodSecurityContext *context = &review->pod->spec.security_context;
        CLEANUP_FINDING finding = { .review = review };

        for (size_t i = 0; i < context->sysctls.n; i++) {
                const char *name = strna(context->sysctls.items[i].name);

                if (!is_allowed_sysctl(name, review->minor))
                        add_name(&finding, &finding.values, name);
        }
        if (!finding.values)
                return;
        print_names(begin_violation(review, "forbidden sysctls"), finding.values, "");
        fputc(')', review->out);
}

/* ---- volumes ---- */

/* NULL: it is allowed at the level restricted. */
static const char *restricted_volume_type(const Volume *volume) {
        static const struct {
                const char *type;
                size_t offset;
        } types[] = {
#define TYPE(name, member) { name, offsetof(UnmountableVolume, member) }
                TYPE("gcePersistentDisk", gce_persistent_disk),
                TYPE("awsElasticBlockStore", aws_elastic_block_store),
                TYPE("gitRepo", git_repo),
                TYPE("iscsi", iscsi),
                TYPE("glusterfs", glusterfs),
                TYPE("rbd", rbd),
                TYPE("flexVolume", flex_volume),
                TYPE("cinder", cinder),
                TYPE("cephfs", cephfs),
                TYPE("flocker", flocker),
                TYPE("fc", fc),
                TYPE("azureFile", azure_file),
                TYPE("vsphereVolume", vsphere_volume),
                TYPE("quobyte", quobyte),
                TYPE("azureDisk", azure_disk),
                TYPE("photonPersistentDisk", photon_persistent_disk),
                TYPE("portworxVolume", portworx_volume),
                TYPE("scaleIO", scale_io),
                TYPE("storageos", storageos),
#undef TYPE
        };

        if (volume->config_map || volume->csi || volume->downward_api || volume->empty_dir ||
            volume->ephemeral || volume->image || volume->persistent_volume_claim ||
            volume->projected || volume->secret)
                return NULL;
        if (volume->host_path)
                return "hostPath";
        if (volume->nfs)
                return "nfs";
        for (size_t i = 0; i < N_ELEMENTS(types); i++)
                if (*((const bool *) ((const char *) &volume->unmountable + types[i].offset)))
                        return types[i].type;
        return "unknown";
}

void check_volume_types(PodSecurityReview *review) {
        const PodSpec *spec = &review->pod->spec;
        CLEANUP_FINDING finding = { .review = review };
        cleanup_strv char **volumes = NULL;
        FILE *out;

        for (size_t i = 0; i < spec->volumes.n; i++) {
                const char *type = restricted_volume_type(&spec->volumes.items[i]);

                if (!type)
                        continue;
                add_value(&finding, type);
                add_name(&finding, &volumes, spec->volumes.items[i].name);
        }
        if (!volumes)
                return;
        out = begin_violation(review, "restricted volume types");
        fprintf(out, "volume%s ", plural_of(volumes));
        print_names(out, volumes, "\"");
        fprintf(out, " use%s restricted volume type%s ", strv_length(volumes) == 1 ? "s" : "",
                plural_of(finding.values));
        print_names(out, finding.values, "\"");
        fputc(')', out);
}

/* ---- users ---- */

static bool runs_explicitly_as_root(const Container *container, Finding *finding) {
        const OptionalBool *non_root = &container->security_context.run_as_non_root;

        return non_root->is_set && !non_root->value;
}

static bool says_not_whether_root(const Container *container, Finding *finding) {
        return !container->security_context.run_as_non_root.is_set;
}

void check_run_as_non_root(PodSecurityReview *review) {
        const OptionalBool *of_pod = &review->pod->spec.security_context.run_as_non_root;
        CLEANUP_FINDING finding = { .review = review };
        CLEANUP_FINDING missing = { .review = review };

        if (is_relaxed_for_own_users(review))
                return;
        finding.is_in_pod = of_pod->is_set && !of_pod->value;
        find_containers(&finding, runs_explicitly_as_root);
        report_findings(&finding, "runAsNonRoot != true",
                        "must not set securityContext.runAsNonRoot=false");
        if (has_findings(&finding) || of_pod->is_set)
                return;
        find_containers(&missing, says_not_whether_root);
        if (!has_findings(&missing))
                return;
        fprintf(begin_violation(review, "runAsNonRoot != true"), "pod or ");
        print_containers(review->out, missing.containers);
        fprintf(review->out, " must set securityContext.runAsNonRoot=true)");
}

static bool has_root_user(const Container *container, Finding *finding) {
        const OptionalInt *user = &container->security_context.run_as_user;

        return user->is_set && user->value == 0;
}

void check_run_as_user(PodSecurityReview *review) {
        const OptionalInt *of_pod = &review->pod->spec.security_context.run_as_user;
        CLEANUP_FINDING finding = { .review = review };

        if (is_relaxed_for_own_users(review))
                return;
        finding.is_in_pod = of_pod->is_set && of_pod->value == 0;
        find_containers(&finding, has_root_user);
        report_findings(&finding, "runAsUser=0", "must not set runAsUser=0");
}
