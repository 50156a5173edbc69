/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/pod-dns.h"

#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"

enum {
        NAMESERVERS_MAX = 3,
        SEARCHES_MAX = 32,
        SEARCH_CHARACTERS_MAX = 2048,
        OPTIONS_MAX = 64,
};

/* ---- names ---- */

/* The pod's host name, without the domain. */
static char *pod_short_hostname(const Pod *pod) {
        const char *override = strna(pod->spec.hostname_override);
        const char *name = strna(pod->spec.hostname)[0] ? pod->spec.hostname : pod->metadata.name;
        size_t n = MIN(strlen(name), (size_t) DNS_LABEL_MAX);

        if (override[0])
                return strdup(override);
        while (n > 0 && strlen(name) > n && (name[n - 1] == '-' || name[n - 1] == '.'))
                n--;
        return strndup(name, n);
}

/* "<subdomain>.<namespace>.svc.<cluster domain>", or "" without a subdomain, or if hostnameOverride
 * replaces the whole name. */
static char *pod_cluster_domain(const BundleConfig *config, const Pod *pod) {
        const char *subdomain = strna(pod->spec.subdomain);

        if (!subdomain[0] || strna(pod->spec.hostname_override)[0])
                return strdup("");
        return text_format("%s.%s.svc.%s", subdomain, pod->metadata.namespace,
                           strna(config->cluster_domain));
}

int pod_hostname(const BundleConfig *config, const Pod *pod, char **ret, Error *reterr) {
        cleanup_free char *name = NULL, *domain = NULL, *full = NULL;

        if (pod->spec.host_network) {
                *ret = strdup(config->hostname);
                return *ret ? 0 : -ENOMEM;
        }
        name = pod_short_hostname(pod);
        domain = pod_cluster_domain(config, pod);
        if (!name || !domain)
                return -ENOMEM;
        if (pod->spec.set_hostname_as_fqdn && domain[0]) {
                full = text_format("%s.%s", name, domain);
                if (!full)
                        return -ENOMEM;
                if (strlen(full) > HOSTNAME_MAX)
                        return error_setf(reterr, EINVAL,
                                          "failed to construct FQDN from pod hostname and cluster "
                                          "domain, FQDN %s is too long (%d characters is the max, "
                                          "%zu characters requested)",
                                          full, HOSTNAME_MAX, strlen(full));
                *ret = TAKE_PTR(full);
        } else
                *ret = TAKE_PTR(name);
        return 0;
}

/* ---- /etc/hosts ---- */

static void write_host_aliases(FILE *out, const PodSpec *spec) {
        if (spec->host_aliases.n == 0)
                return;
        (void) fprintf(out, "\n# Entries added by HostAliases.\n");
        for (size_t i = 0; i < spec->host_aliases.n; i++) {
                const HostAlias *alias = &spec->host_aliases.items[i];

                (void) fputs(alias->ip, out);
                strv_foreach(name, alias->hostnames)
                        (void) fprintf(out, "\t%s", *name);
                (void) fputc('\n', out);
        }
}

static const char managed_hosts[] = "# Kubernetes-managed hosts file.\n"
                                    "127.0.0.1\tlocalhost\n"
                                    "::1\tlocalhost ip6-localhost ip6-loopback\n"
                                    "fe00::0\tip6-localnet\n"
                                    "fe00::0\tip6-mcastprefix\n"
                                    "fe00::1\tip6-allnodes\n"
                                    "fe00::2\tip6-allrouters\n";

char *compose_hosts_file(const BundleConfig *config, const Pod *pod, const char *const *addresses,
                         size_t n_addresses, const char *node_hosts) {
        cleanup_free char *name = pod_short_hostname(pod),
                          *domain = pod_cluster_domain(config, pod);
        char *text = NULL;
        size_t length;
        FILE *out;

        if (!name || !domain)
                return NULL;
        out = open_memstream(&text, &length);
        if (!out)
                return NULL;
        if (n_addresses == 0)
                (void) fprintf(out, "# Kubernetes-managed hosts file (host network).\n%s",
                               strna(node_hosts));
        else
                (void) fputs(managed_hosts, out);
        for (size_t i = 0; i < n_addresses; i++)
                if (domain[0])
                        (void) fprintf(out, "%s\t%s.%s\t%s\n", addresses[i], name, domain, name);
                else
                        (void) fprintf(out, "%s\t%s\n", addresses[i], name);
        write_host_aliases(out, &pod->spec);
        return memstream_finish(out, &text);
}

/* ---- /etc/resolv.conf ---- */

typedef struct ResolvConf {
        char **nameservers;
        char **searches;
        char **options; /* "ndots:5", "rotate" */
} ResolvConf;

static void resolv_conf_done(ResolvConf *conf) {
        strv_free(conf->nameservers);
        strv_free(conf->searches);
        strv_free(conf->options);
}

static int add_unique_string(char ***strv, const char *text, size_t max) {
        if (strv_contains(*strv, text) || strv_length(*strv) >= max)
                return 0;
        return strv_append(strv, text);
}

static int add_unique_strings(char ***strv, char *const *texts, size_t max) {
        int r;

        for (size_t i = 0; texts && texts[i]; i++) {
                r = add_unique_string(strv, texts[i], max);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Replaces an option with the same name. */
static int add_resolver_option(char ***options, const char *name, const char *value) {
        size_t length = strlen(name);
        char *option = text_format("%s%s%s", name, value ? ":" : "", strna(value));

        if (!option)
                return -ENOMEM;
        for (size_t i = 0; *options && (*options)[i]; i++) {
                char *known = (*options)[i];

                if (strncmp(known, name, length) == 0 &&
                    (known[length] == ':' || known[length] == '\0')) {
                        free(known);
                        (*options)[i] = option;
                        return 0;
                }
        }
        if (strv_length(*options) < OPTIONS_MAX && strv_append(options, option) < 0) {
                free(option);
                return -ENOMEM;
        }
        free(option);
        return 0;
}

/* A domain with a trailing dot is the same domain. The root domain, which systemd-resolved writes,
 * becomes empty, because it would make musl's resolver fail for every name. */
static void drop_final_dot(char *domain) {
        size_t length = strlen(domain);

        if (length > 0 && domain[length - 1] == '.')
                domain[length - 1] = '\0';
}

static int add_first_word(char ***strv, char *words, size_t max) {
        words += strspn(words, " \t");
        words[strcspn(words, " \t\r")] = '\0';
        return words[0] ? add_unique_string(strv, words, max) : 0;
}

static int add_resolver_words(char ***strv, char *words, size_t max, bool are_domains) {
        char *word;
        int r = 0;

        while ((word = strsep(&words, " \t\r"))) {
                if (are_domains)
                        drop_final_dot(word);
                if (word[0])
                        r = add_unique_string(strv, word, max);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* One line of resolv.conf(5). The last search line is used. */
static int parse_resolv_conf_line(ResolvConf *conf, char *line) {
        char *rest = line + strspn(line, " \t"), *key = strsep(&rest, " \t");

        if (!rest)
                return 0;
        if (streq(key, "nameserver"))
                return add_first_word(&conf->nameservers, rest, NAMESERVERS_MAX);
        if (streq(key, "search")) {
                conf->searches = strv_free(conf->searches);
                return add_resolver_words(&conf->searches, rest, SEARCHES_MAX, true);
        }
        return streq(key, "options") ? add_resolver_words(&conf->options, rest, OPTIONS_MAX, false)
                                     : 0;
}

static int parse_resolv_conf(ResolvConf *conf, const char *text) {
        cleanup_free char *copy = strdup(strna(text));
        char *rest = copy, *line;
        int r = copy ? 0 : -ENOMEM;

        if (r < 0)
                return r;
        while ((line = strsep(&rest, "\n"))) {
                line[strcspn(line, "#;")] = '\0';
                r = parse_resolv_conf_line(conf, line);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_cluster_searches(char ***searches, const char *namespace, const char *domain) {
        int r = strv_appendf(searches, "%s.svc.%s", namespace, domain);

        if (r < 0)
                return r;
        r = strv_appendf(searches, "svc.%s", domain);
        if (r < 0)
                return r;
        return strv_append(searches, domain);
}

/* The cluster's servers and domains, before those of the node. */
static int use_cluster_dns(ResolvConf *conf, const BundleConfig *config, const Pod *pod) {
        const char *domain = strna(config->cluster_domain);
        cleanup_with(resolv_conf_done) ResolvConf cluster = { 0 };
        int r = add_unique_strings(&cluster.nameservers, config->cluster_dns, NAMESERVERS_MAX);

        if (r < 0)
                return r;
        if (domain[0]) {
                r = add_cluster_searches(&cluster.searches, pod->metadata.namespace, domain);
                if (r < 0)
                        return r;
        }
        r = add_unique_strings(&cluster.searches, conf->searches, SEARCHES_MAX);
        if (r < 0)
                return r;
        r = add_resolver_option(&cluster.options, "ndots", "5");
        if (r < 0)
                return r;
        resolv_conf_done(conf);
        *conf = cluster;
        cluster = (ResolvConf){ 0 };
        return 0;
}

/* Without clusterDNS, ClusterFirst means the node's configuration. In the host network,
 * ClusterFirst also means the node's configuration, and ClusterFirstWithHostNet the cluster's. */
static bool wants_cluster_dns(const BundleConfig *config, const PodSpec *spec) {
        if (!config->cluster_dns || !config->cluster_dns[0])
                return false;
        if (spec->dns_policy == DNS_POLICY_CLUSTER_FIRST_WITH_HOST_NET)
                return true;
        return spec->dns_policy == DNS_POLICY_CLUSTER_FIRST && !spec->host_network;
}

static int add_pod_dns_config(ResolvConf *conf, const PodDnsConfig *config) {
        int r = add_unique_strings(&conf->nameservers, config->nameservers, NAMESERVERS_MAX);

        if (r < 0)
                return r;
        r = add_unique_strings(&conf->searches, config->searches, SEARCHES_MAX);
        if (r < 0)
                return r;
        for (size_t i = 0; i < config->options.n; i++) {
                r = add_resolver_option(&conf->options, config->options.items[i].name,
                                        config->options.items[i].value);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int compose_resolv_conf(ResolvConf *conf, const BundleConfig *config, const Pod *pod,
                               const char *node_resolv_conf) {
        const PodSpec *spec = &pod->spec;
        int r = 0;

        if (spec->dns_policy != DNS_POLICY_NONE)
                r = parse_resolv_conf(conf, node_resolv_conf);
        if (r < 0)
                return r;
        if (wants_cluster_dns(config, spec))
                r = use_cluster_dns(conf, config, pod);
        if (r < 0 || !spec->dns_config)
                return r;
        return add_pod_dns_config(conf, spec->dns_config);
}

static void write_resolv_conf_words(FILE *out, const char *key, char *const *words,
                                    size_t max_characters) {
        size_t length = 0;

        for (size_t i = 0; words && words[i]; i++) {
                length += strlen(words[i]) + (i > 0);
                if (length > max_characters)
                        break;
                (void) fprintf(out, "%s %s", i == 0 ? key : "", words[i]);
        }
        if (length > 0)
                (void) fputc('\n', out);
}

char *pod_resolv_conf(const BundleConfig *config, const Pod *pod, const char *node_resolv_conf) {
        cleanup_with(resolv_conf_done) ResolvConf conf = { 0 };
        char *text = NULL;
        size_t length;
        FILE *out;

        if (compose_resolv_conf(&conf, config, pod, node_resolv_conf) < 0)
                return NULL;
        out = open_memstream(&text, &length);
        if (!out)
                return NULL;
        write_resolv_conf_words(out, "search", conf.searches, SEARCH_CHARACTERS_MAX);
        strv_foreach(server, conf.nameservers)
                (void) fprintf(out, "nameserver %s\n", *server);
        write_resolv_conf_words(out, "options", conf.options, SIZE_MAX);
        return memstream_finish(out, &text);
}
