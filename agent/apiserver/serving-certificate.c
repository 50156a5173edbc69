/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/apiserver/serving-certificate.h"

#include "agent/kubeclient/certificate-manager.h"
#include "agent/kubeclient/tls-config.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/file.h"
#include "common/log.h"
#include "common/strv.h"

#include <fcntl.h>

struct ServingCertificate {
        sd_event *event; /* borrowed */
        char *node_name, *directory, *path;
        CsrServer server;
        Kubeconfig kubeconfig;       /* in use */
        CertificateManager *manager; /* NULL: there is no kubeconfig yet */
        char *pair;
        uint64_t not_before, not_after; /* realtime; 0: a new one is needed */
};

/* An unusable pair is ignored: the previous one stays in use, and another one is requested. */
static void read_serving_pair(ServingCertificate *serving) {
        cleanup_error Error error = ERROR_NULL;
        char *pair = NULL;
        uint64_t not_before = 0, not_after = 0;
        size_t length;
        int r = read_file_at(AT_FDCWD, serving->path, TLS_FILE_MAX, &pair, &length);

        if (r >= 0)
                r = kube_pair_check(pair, &not_before, &not_after, &error);
        if (r < 0) {
                if (r != -ENOENT)
                        log_warning("Cannot use the serving certificate %s: %s", serving->path,
                                    error_message(&error, r));
                serving->not_before = serving->not_after = 0;
                secret_free(pair);
                return;
        }
        secret_free(serving->pair);
        serving->pair = pair;
        if (!kube_pair_is_for(pair, serving->server.names, serving->server.addresses))
                not_before = not_after = 0;
        serving->not_before = not_before;
        serving->not_after = not_after;
}

static int pass_on_certificate(ServingCertificate *serving) {
        return certificate_manager_set_certificate(serving->manager, &serving->kubeconfig,
                                                   serving->not_before, serving->not_after);
}

static void on_serving_error(const char *error, void *userdata) {
        if (error)
                log_warning("Serving certificate: %s", error);
}

static void on_serving_renewed(void *userdata) {
        ServingCertificate *serving = userdata;
        int r;

        read_serving_pair(serving);
        log_info("The API server has issued a serving certificate");
        r = pass_on_certificate(serving);
        if (r < 0)
                (void) log_error_errno(r, "Cannot watch the serving certificate's expiry");
}

int serving_certificate_set_kubeconfig(ServingCertificate *serving, const Kubeconfig *kubeconfig,
                                       KubeClient *client) {
        Kubeconfig copy = { 0 };
        int r = kubeconfig_copy(kubeconfig, &copy);

        if (r < 0)
                return r;
        kubeconfig_done(&serving->kubeconfig);
        serving->kubeconfig = copy;
        if (!serving->manager)
                r = certificate_manager_new(
                        &(CertificateManagerSpec){ .event = serving->event,
                                                   .node_name = serving->node_name,
                                                   .directory = serving->directory,
                                                   .server = &serving->server,
                                                   .client = client,
                                                   .on_error = on_serving_error,
                                                   .on_rotated = on_serving_renewed,
                                                   .userdata = serving },
                        &serving->manager);
        return r < 0 ? r : pass_on_certificate(serving);
}

const char *serving_certificate_pair(const ServingCertificate *serving) {
        return serving->pair;
}

void serving_certificate_dump(const ServingCertificate *serving, FILE *out) {
        dump_line(out, 1, "serving certificate: %s", serving->pair ? serving->path : "none yet");
        if (serving->manager)
                certificate_manager_dump(serving->manager, out);
}

/* ---- construction ---- */

static int copy_serving_spec(ServingCertificate *serving, const ServingCertificateSpec *spec) {
        serving->event = spec->event;
        serving->node_name = strdup(spec->node_name);
        serving->directory = strdup(spec->directory);
        serving->path = path_join(spec->directory, SERVER_PAIR_FILE);
        if (!serving->node_name || !serving->directory || !serving->path)
                return -ENOMEM;
        if (spec->hostname && strv_append(&serving->server.names, spec->hostname) < 0)
                return -ENOMEM;
        if (spec->address && strv_append(&serving->server.addresses, spec->address) < 0)
                return -ENOMEM;
        return spec->other_address ? strv_append(&serving->server.addresses, spec->other_address)
                                   : 0;
}

int serving_certificate_new(const ServingCertificateSpec *spec, ServingCertificate **ret) {
        cleanup_with(serving_certificate_freep) ServingCertificate *serving =
                calloc(1, sizeof(*serving));
        int r;

        if (!serving)
                return -ENOMEM;
        r = copy_serving_spec(serving, spec);
        if (r < 0)
                return r;
        read_serving_pair(serving);
        *ret = TAKE_PTR(serving);
        return 0;
}

ServingCertificate *serving_certificate_free(ServingCertificate *serving) {
        if (!serving)
                return NULL;
        certificate_manager_free(serving->manager);
        kubeconfig_done(&serving->kubeconfig);
        strv_free(serving->server.names);
        strv_free(serving->server.addresses);
        secret_free(serving->pair);
        free(serving->node_name);
        free(serving->directory);
        free(serving->path);
        free(serving);
        return NULL;
}
