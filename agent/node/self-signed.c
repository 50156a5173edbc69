/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/self-signed.h"

#include "agent/kubeclient/tls-config.h"
#include "agent/node/node-authority.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable-write.h"
#include "common/file.h"
#include "common/log.h"
#include "common/text.h"

#include <fcntl.h>

#define CERTIFICATE_FILE "kubelet.crt"
#define KEY_FILE         "kubelet.key"

enum {
        SELF_SIGNED_DAYS = 365,
};

struct SelfSigned {
        SelfSignedSpec spec;
        char *directory;
        char *certificate, *key;       /* PEM; NULL: not read yet */
        uint64_t not_before, renew_at; /* realtime */
        ForkedTask *write;
};

int self_signed_new(const SelfSignedSpec *spec, SelfSigned **ret) {
        SelfSigned *self = calloc(1, sizeof(*self));

        if (!self)
                return -ENOMEM;
        self->spec = *spec;
        self->directory = spec->certificate_dir ? strdup(spec->certificate_dir)
                                                : path_join(spec->state_dir, "pki");
        if (!self->directory) {
                free(self);
                return -ENOMEM;
        }
        *ret = self;
        return 0;
}

static void forget_self_signed(SelfSigned *self) {
        free(self->certificate);
        self->certificate = NULL;
        self->key = secret_free(self->key);
}

SelfSigned *self_signed_free(SelfSigned *self) {
        if (!self)
                return NULL;
        forked_task_free(self->write);
        forget_self_signed(self);
        free(self->directory);
        free(self);
        return NULL;
}

/* ---- the files ---- */

static int read_certificate_file(const SelfSigned *self, const char *name, char **ret) {
        cleanup_free char *path = path_join(self->directory, name);
        size_t length;

        return path ? read_file_at(AT_FDCWD, path, TLS_FILE_MAX, ret, &length) : -ENOMEM;
}

/* The time of the renewal: four fifths of the lifetime, because clocks differ; never if another key
 * has signed the certificate. */
static uint64_t choose_renewal(const char *certificate, uint64_t not_before, uint64_t not_after) {
        return is_self_signed(certificate) && not_after > not_before
                       ? not_before + (not_after - not_before) / 5 * 4
                       : UINT64_MAX;
}

static int check_self_signed(SelfSigned *self, Error *reterr) {
        uint64_t not_before, not_after;
        char *pair = text_format("%s\n%s", self->certificate, self->key);
        int r;

        if (!pair)
                return -ENOMEM;
        r = kube_pair_check(pair, &not_before, &not_after, reterr);
        if (r >= 0) {
                self->not_before = not_before;
                self->renew_at = choose_renewal(self->certificate, not_before, not_after);
        }
        secret_free(pair);
        return r;
}

/* 0; -errno: the files are missing or damaged. */
static int read_self_signed(SelfSigned *self) {
        cleanup_error Error error = ERROR_NULL;
        int r = read_certificate_file(self, CERTIFICATE_FILE, &self->certificate);

        if (r >= 0)
                r = read_certificate_file(self, KEY_FILE, &self->key);
        if (r >= 0)
                r = check_self_signed(self, &error);
        if (r >= 0)
                return 0;
        if (r != -ENOENT)
                log_warning("Cannot use %s/" CERTIFICATE_FILE ": %s; creating a new one",
                            self->directory, error_message(&error, r));
        forget_self_signed(self);
        return r;
}

static void on_self_signed_written(int r, void *userdata) {
        SelfSigned *self = userdata;

        self->write = NULL;
        if (r < 0)
                log_warning("Cannot write %s/" CERTIFICATE_FILE
                            ": %s; it is valid until the agent restarts",
                            self->directory, strerror(-r));
}

static int make_self_signed(SelfSigned *self, uint64_t now, Error *reterr) {
        bool has_one_name =
                !self->spec.hostname || streq(self->spec.hostname, self->spec.node_name);
        const char *const names[] = { self->spec.node_name,
                                      has_one_name ? NULL : self->spec.hostname, NULL };
        const char *const addresses[] = { self->spec.address, self->spec.other_address, NULL };
        NodeCertificateSpec spec = { .common_name = self->spec.node_name,
                                     .dns_names = names,
                                     .addresses = addresses,
                                     .valid_days = SELF_SIGNED_DAYS };
        char *certificate, *key;
        int r = self_signed_issue(&spec, now, &certificate, &key, reterr);

        if (r < 0)
                return r;
        forget_self_signed(self);
        self->certificate = certificate;
        self->key = key;
        r = check_self_signed(self, reterr);
        if (r < 0)
                return r;
        self->write = forked_task_free(self->write);
        return durable_write_start(self->spec.event, self->directory,
                                   (DurableFile[]){ { KEY_FILE, self->key, 0600 },
                                                    { CERTIFICATE_FILE, self->certificate, 0644 } },
                                   2, on_self_signed_written, self, &self->write);
}

/* A certificate that is not valid yet was created while the clock was ahead. */
static bool is_self_signed_due(const SelfSigned *self, uint64_t now) {
        bool is_ours = self->renew_at != UINT64_MAX;

        return now >= self->renew_at || (is_ours && now < self->not_before && clock_is_set(now));
}

/* ---- settings ---- */

int self_signed_add_settings(SelfSigned *self, json_t *settings, Error *reterr) {
        uint64_t now = now_realtime_usec();
        int r = 0;

        if (!self->certificate)
                r = read_self_signed(self);
        if (r < 0 || is_self_signed_due(self, now))
                r = make_self_signed(self, now, reterr);
        if (r < 0)
                return r;
        if (json_object_set_new(settings, "certificate", json_string(self->certificate)) < 0 ||
            json_object_set_new(settings, "key", json_string(self->key)) < 0)
                return -ENOMEM;
        return 0;
}
