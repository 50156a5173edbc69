/* SPDX-License-Identifier: Apache-2.0 */

/* Annotations for seccomp and AppArmor profiles, which have been replaced by fields. As in
 * Kubernetes, an annotation that contradicts its field is an error; without the field, an AppArmor
 * annotation sets it, and a seccomp annotation is ignored. */

#include "agent/manifest/validate-pod.h"
#include "agent/model/cdi.h"
#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/strv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ProfileAnnotation {
        const char *key; /* the whole key, or the part before a container's name */
        const char *word;
        const char *field;
        bool is_of_container;
        bool is_app_armor;
} ProfileAnnotation;

static const ProfileAnnotation kinds[] = {
        { "container.apparmor.security.beta.kubernetes.io/", "AppArmor", "appArmorProfile", true,
          true },
        { "container.seccomp.security.alpha.kubernetes.io/", "seccomp", "seccompProfile", true,
          false },
        { "seccomp.security.alpha.kubernetes.io/pod", "seccomp", "seccompProfile", false, false },
};

/* The profile in the field, and its place: the container's, or the pod's, which for AppArmor also
 * applies to its containers. */
typedef struct ProfileField {
        const SecurityProfile *profile; /* NULL: not set */
        char context[64];               /* "spec.containers[0].securityContext" */
        bool is_found;                  /* the container named by the annotation exists */
} ProfileField;

static const ProfileAnnotation *find_kind(const char *key) {
        for (size_t i = 0; i < N_ELEMENTS(kinds); i++)
                if (kinds[i].is_of_container ? strncmp(key, kinds[i].key, strlen(kinds[i].key)) == 0
                                             : streq(key, kinds[i].key))
                        return &kinds[i];
        return NULL;
}

static ProfileField profile_field_for(const Pod *pod, const ProfileAnnotation *kind,
                                      const char *key) {
        const PodSecurityContext *context = &pod->spec.security_context;
        const char *name = key + strlen(kind->key);
        const Rules rules = { .pod = pod };
        ProfileField field = {
                .profile =
                        kind->is_app_armor ? context->app_armor_profile : context->seccomp_profile,
                .context = "spec.securityContext",
                .is_found = !kind->is_of_container,
        };

        for (size_t i = 0; kind->is_of_container && i < pod_count_containers(&pod->spec); i++) {
                const ContainerAt at = container_at(&rules, i);
                const SecurityContext *own = &at.container->security_context;
                const SecurityProfile *profile =
                        kind->is_app_armor ? own->app_armor_profile : own->seccomp_profile;

                if (!streq_ptr(at.container->name, name))
                        continue;
                field.is_found = true;
                /* The seccomp annotation of a container is not compared with the pod's field. */
                if (profile || !kind->is_app_armor) {
                        field.profile = profile;
                        (void) snprintf(field.context, sizeof(field.context), "%s.securityContext",
                                        at.path);
                }
        }
        return field;
}

static bool is_profile_name(const ProfileAnnotation *kind, const char *value) {
        return streq(value, "runtime/default") || streq(value, "unconfined") ||
               strncmp(value, "localhost/", strlen("localhost/")) == 0 ||
               streq(value, kind->is_app_armor ? "" : "docker/default");
}

static bool is_same_profile(const SecurityProfile *profile, const char *value) {
        static const char local[] = "localhost/";

        switch (profile->type) {
        case PROFILE_RUNTIME_DEFAULT:
                return streq(value, "runtime/default") || streq(value, "docker/default");
        case PROFILE_UNCONFINED:
                return streq(value, "unconfined");
        case PROFILE_LOCALHOST:
                return strncmp(value, local, strlen(local)) == 0 &&
                       streq_ptr(value + strlen(local), profile->localhost_profile);
        default:
                return true;
        }
}

static int check_profile_annotation(const Rules *rules, const ProfileAnnotation *kind,
                                    const KeyValue *annotation) {
        ProfileField field = profile_field_for(rules->pod, kind, annotation->key);
        char text[EXCERPT_SIZE], key[EXCERPT_SIZE];
        int r = 0;

        if (!field.is_found)
                r = error_setf(rules->reterr, EINVAL, "must name a container of this pod, not '%s'",
                               excerpt(text, annotation->key + strlen(kind->key)));
        else if (!is_profile_name(kind, annotation->value))
                r = error_setf(rules->reterr, EINVAL, "must be a valid %s profile, not '%s'",
                               kind->word, excerpt(text, annotation->value));
        if (r < 0)
                return rules_at(rules, r, "metadata.annotations[%s]",
                                excerpt(key, annotation->key));
        if (!field.profile || is_same_profile(field.profile, annotation->value))
                return 0;
        r = error_setf(rules->reterr, EINVAL,
                       "%s profile in annotation and field must match; the annotation says '%s'",
                       kind->word, excerpt(text, annotation->value));
        return rules_at(rules, r, "%s.%s", field.context, kind->field);
}

int check_device_annotations(const Rules *rules) {
        const StringMap *annotations = &rules->pod->metadata.annotations;
        char text[EXCERPT_SIZE];

        /* In an API server's pod, an invalid profile prevents the creation of the containers, as in
         * containerd. */
        for (size_t i = 0; i < annotations->n && !rules_are_of_api(rules); i++) {
                const KeyValue *annotation = &annotations->items[i];
                cleanup_strv char **names = NULL;
                int r;

                if (!is_cdi_annotation(annotation->key))
                        continue;
                r = cdi_annotation_split(annotation->value, &names, rules->reterr);
                if (r < 0)
                        return rules_at(rules, r, "metadata.annotations[%s]",
                                        excerpt(text, annotation->key));
        }
        return 0;
}

int check_profile_annotations(const Rules *rules) {
        const StringMap *annotations = &rules->pod->metadata.annotations;

        for (size_t i = 0; i < annotations->n; i++) {
                const ProfileAnnotation *kind = find_kind(annotations->items[i].key);
                int r = kind ? check_profile_annotation(rules, kind, &annotations->items[i]) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

/* check_profile_annotations() handles invalid values. */
static int set_app_armor_profile(const PodSecurityContext *pod_context, const char *value,
                                 SecurityContext *context) {
        static const char local[] = "localhost/";
        bool is_local = strncmp(value, local, strlen(local)) == 0 && value[strlen(local)];
        ProfileType type = streq(value, "runtime/default") ? PROFILE_RUNTIME_DEFAULT
                           : streq(value, "unconfined")    ? PROFILE_UNCONFINED
                           : is_local                      ? PROFILE_LOCALHOST
                                                           : PROFILE_UNSET;
        SecurityProfile *profile;

        /* As in the kubelet, an annotation that contradicts the pod's profile is an error. */
        if (type == PROFILE_UNSET || pod_context->app_armor_profile)
                return 0;
        profile = calloc(1, sizeof(*profile));
        if (!profile)
                return -ENOMEM;
        context->app_armor_profile = profile;
        profile->type = type;
        if (!is_local)
                return 0;
        profile->localhost_profile = strdup(value + strlen(local));
        return profile->localhost_profile ? 0 : -ENOMEM;
}

static int take_app_armor_annotation(const Pod *pod, Container *container) {
        static const ProfileAnnotation *const kind = &kinds[0];
        char key[256];
        const char *value;

        (void) snprintf(key, sizeof(key), "%s%s", kind->key, strna(container->name));
        value = string_map_get(&pod->metadata.annotations, key);
        if (!value || container->security_context.app_armor_profile)
                return 0;
        return set_app_armor_profile(&pod->spec.security_context, value,
                                     &container->security_context);
}

int pod_take_app_armor_annotations(Pod *pod) {
        PodSpec *spec = &pod->spec;
        int r = 0;

        for (size_t i = 0; i < spec->init_containers.n && r >= 0; i++)
                r = take_app_armor_annotation(pod, &spec->init_containers.items[i]);
        for (size_t i = 0; i < spec->containers.n && r >= 0; i++)
                r = take_app_armor_annotation(pod, &spec->containers.items[i]);
        for (size_t i = 0; i < spec->ephemeral_containers.n && r >= 0; i++)
                r = take_app_armor_annotation(pod, &spec->ephemeral_containers.items[i]);
        return r;
}

const char *find_unset_profile_field(const Pod *pod, const char *key) {
        const ProfileAnnotation *kind = find_kind(key);

        return kind && !profile_field_for(pod, kind, key).profile ? kind->field : NULL;
}
