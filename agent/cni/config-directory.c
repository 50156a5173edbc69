/* SPDX-License-Identifier: Apache-2.0 */

/* The directory of network configurations, as /etc/cni/net.d. It is read each time a pod's network
 * is set up. What a file says is checked by config.c. */

#include "agent/cni/config-directory.h"

#include "agent/cni/limits.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <dirent.h>
#include <fcntl.h>

enum {
        FILES_MAX = 1024,
};

const char cni_default_config[] = "{\n"
                                  "  \"cniVersion\": \"1.0.0\",\n"
                                  "  \"name\": \"mainstay\",\n"
                                  "  \"plugins\": [\n"
                                  "    {\n"
                                  "      \"type\": \"bridge\",\n"
                                  "      \"bridge\": \"mainstay0\",\n"
                                  "      \"isGateway\": true,\n"
                                  "      \"ipMasq\": true,\n"
                                  "      \"hairpinMode\": true,\n"
                                  "      \"ipam\": {\n"
                                  "        \"type\": \"host-local\",\n"
                                  "        \"ranges\": [[{ \"subnet\": \"10.189.0.0/16\" }]],\n"
                                  "        \"routes\": [{ \"dst\": \"0.0.0.0/0\" }]\n"
                                  "      }\n"
                                  "    },\n"
                                  "    {\n"
                                  "      \"type\": \"portmap\",\n"
                                  "      \"capabilities\": { \"portMappings\": true }\n"
                                  "    },\n"
                                  "    {\n"
                                  "      \"type\": \"firewall\"\n"
                                  "    },\n"
                                  "    {\n"
                                  "      \"type\": \"bandwidth\",\n"
                                  "      \"capabilities\": { \"bandwidth\": true }\n"
                                  "    }\n"
                                  "  ]\n"
                                  "}\n";

static bool is_config_file_name(const char *name) {
        static const char *const suffixes[] = { ".conflist", ".conf", ".json" };
        const char *dot = strrchr(name, '.');

        for (size_t i = 0; dot && name[0] != '.' && i < N_ELEMENTS(suffixes); i++)
                if (streq(dot, suffixes[i]))
                        return true;
        return false;
}

/* The name that sorts first; NULL if there is none. */
static int find_first_config_file(const char *directory, char **ret) {
        cleanup_closedir DIR *dir = opendir(directory);
        cleanup_free char *first = NULL;
        struct dirent *entry;

        if (!dir)
                return errno == ENOENT ? 0 : -errno;
        for (unsigned i = 0; i < FILES_MAX && (errno = 0, entry = readdir(dir)); i++) {
                if (!is_config_file_name(entry->d_name) ||
                    (first && strcmp(entry->d_name, first) >= 0))
                        continue;
                free(first);
                first = strdup(entry->d_name);
                if (!first)
                        return -ENOMEM;
        }
        if (errno != 0)
                return -errno;
        *ret = TAKE_PTR(first);
        return 0;
}

int cni_config_load(const char *config_dir, char **ret_text, char **ret_file, Error *reterr) {
        cleanup_free char *name = NULL, *file = NULL, *text = NULL;
        int r;

        r = find_first_config_file(config_dir, &name);
        if (r < 0)
                return error_setf(reterr, -r, "cannot read the directory %s: %s", config_dir,
                                  strerror(-r));
        if (name) {
                file = path_join(config_dir, name);
                if (!file)
                        return -ENOMEM;
                r = read_file_at(AT_FDCWD, file, CNI_CONFIG_MAX, &text, NULL);
                if (r < 0)
                        return error_setf(reterr, -r, "cannot read %s: %s", file, strerror(-r));
        } else
                text = strdup(cni_default_config);
        if (!text)
                return -ENOMEM;
        *ret_text = TAKE_PTR(text);
        *ret_file = TAKE_PTR(file);
        return 0;
}
