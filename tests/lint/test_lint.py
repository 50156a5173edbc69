# SPDX-License-Identifier: Apache-2.0
"""Each check must report a bad example, and must report nothing about a good one."""

import contextlib
import io
import os
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock

import calls
import commits
import english
import gcc_analyzer
import identities
import layers
import names
import pages
import shape
import tools
import units

LICENCE = "/* " + shape.LICENCE + " */\n"
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Lint(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="mainstay-lint-")
        self.addCleanup(shutil.rmtree, self.root)

    def put(self, path, text, mode=0o644):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(full, mode)
        return full

    def expect(self, problems, *parts):
        self.assertEqual(len(problems), 1, problems)
        for part in parts:
            self.assertIn(part, problems[0])


class Units(Lint):
    def test_a_unit_that_is_less_confined_is_reported(self):
        self.put("systemd/a.service.in", "[Service]\nExecStart=@SBIN@/a\n")
        with unittest.mock.patch.dict(units.EXPOSURE_MAX, {"a.service.in": 9.0}, clear=True):
            self.expect(list(units.check(self.root)), "systemd/a.service.in", "more than 9.0")
        with unittest.mock.patch.dict(units.EXPOSURE_MAX, {"a.service.in": 10.0}, clear=True):
            self.assertEqual(list(units.check(self.root)), [])

    def test_a_unit_that_cannot_be_rated_is_reported(self):
        self.assertIsNone(units.read_exposure("Failed to load"))


class Commits(Lint):
    def test_a_valid_commit_message_is_accepted(self):
        for message in ("shim: copy logs in a process of its own\n\nIt reads what containers write.\n",
                        "node-api, model: name the user\n\nA link:\nhttps://example.org/" + "x" * 80 + "\n",
                        "http: add a route\n# a comment of the editor\n\nWhy.\n", "Merge branch 'a'", 'Revert "a: b"', "fixup! a: b"):
            self.assertEqual(commits.find_problems(message), [], message)

    def test_an_invalid_commit_message_is_reported(self):
        body = "\n\nIt was wrong.\n"
        for message, words in (("shim: copy logs\n", "the body that says why is missing"), ("copy logs" + body, "module: imperative summary"),
                               ("shim: copies\nlogs\n", "no empty line"), ("shim: Fixed a race" + body, "imperative"),
                               ("shim: fix a race." + body, "full stop"), ("shim: " + "x" * 67 + body, "73 columns"),
                               ("shim: fix a race\n\n" + "why " * 20, "79 columns")):
            self.expect(commits.find_problems(message.strip() + "\n"), words)

    def git(self, *words):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@example.org", *words], check=True,
                       stdout=subprocess.DEVNULL)

    def test_commits_since_the_hook_are_checked(self):
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "no module and no body")
        self.put(commits.HOOK, "#!/bin/sh\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "packaging: add the hook\n\nIt checks.")
        self.assertEqual(list(commits.check(self.root)), [])
        self.git("commit", "-q", "--allow-empty", "-m", "shim: add nothing")
        self.expect(list(commits.check(self.root)), "shim: add nothing")


class Layers(Lint):
    def include(self, path, header):
        self.put(header, "#pragma once\n")
        self.put(path, f'\n#include "{header}"\n')
        return layers.check(self.root)

    def test_a_lower_layer_does_not_include_a_higher_one(self):
        self.expect(self.include("agent/model/a.c", "agent/manifest/b.h"), "agent/model/a.c:2:", "may not")

    def test_modules_of_one_layer_do_not_include_each_other(self):
        self.expect(self.include("agent/image/a.c", "agent/manifest/b.h"), "image may not include")

    def test_a_module_includes_its_submodules_but_not_the_reverse(self):
        self.assertEqual(self.include("agent/daemonset/a.c", "agent/daemonset/rules/b.h"), [])
        self.expect(self.include("agent/daemonset/rules/a.c", "agent/daemonset/b.h"), "daemonset/rules may not include")

    def test_the_folders_of_a_module_include_each_other_in_one_direction(self):
        self.assertEqual(self.include("agent/pods/worker/a.c", "agent/pods/container/b.h"), [])
        self.expect(self.include("agent/pods/container/a.c", "agent/pods/worker/b.h"), "pods/container may not include")

    def test_the_folders_of_a_module_are_one_layer_for_others(self):
        self.expect(self.include("agent/pods/worker/a.c", "agent/eviction/b.h"), "pods/worker may not include")

    def test_the_folders_of_a_program_are_one_module(self):
        self.assertEqual(self.include("agent/shim/a.c", "agent/shim/mounts/b.h"), [])
        self.expect(self.include("agent/shim/mounts/c.c", "agent/sandbox/sandbox.h"), "shim may not include")

    def test_the_shim_includes_only_the_protocol(self):
        self.assertEqual(self.include("agent/shim/a.c", "agent/sandbox/protocol.h"), [])
        self.expect(self.include("agent/shim/a.c", "agent/sandbox/sandbox.h"), "shim may not include")

    def test_the_image_helper_includes_only_common(self):
        self.assertEqual(self.include("agent/image-helper/a.c", "common/file.h"), [])
        self.expect(self.include("agent/image-helper/a.c", "agent/model/pod.h"), "image-helper may not include")

    def test_the_wiring_includes_all_modules_but_no_program(self):
        self.assertEqual(self.include("agent/agent.c", "agent/pods/manager/pod-manager.h"), [])
        self.expect(self.include("agent/agent.c", "agent/cli/cli.h"), "agent may not include")

    def test_a_module_without_a_layer_is_an_error(self):
        self.expect(self.include("agent/attic/a.c", "common/file.h"), "not a module that has a layer")

    def test_a_missing_header_is_an_error(self):
        self.put("common/a.c", '#include "file.h"\n')
        self.expect(layers.check(self.root), "does not exist")

    def test_files_of_a_module_do_not_include_each_other_in_a_circle(self):
        self.put("common/a.h", '#pragma once\n#include "common/b.h"\n')
        self.put("common/b.h", "#pragma once\n")
        self.put("common/b.c", '#include "common/b.h"\n')
        self.assertEqual(layers.check_circles(self.root), [])
        self.put("common/b.c", '#include "common/a.h"\n')
        self.expect(layers.check_circles(self.root), "common/a, common/b")

    def test_a_private_header_belongs_to_its_source(self):
        self.put("common/a.c", '#include "common/a-private.h"\n')
        self.put("common/a-private.h", '#include "common/a.h"\n')
        self.put("common/a.h", "#pragma once\n")
        self.assertEqual(layers.check_circles(self.root), [])

    def test_a_library_is_included_only_by_the_files_that_the_list_names(self):
        self.put("agent/image-helper/unpack/layer-unpack.c", "#include <archive.h>\n")
        self.assertEqual(layers.check(self.root), [])
        self.put("agent/model/a.c", "#include <archive.h>\n")
        self.expect(layers.check(self.root), "<archive.h> is not for this file")

    def test_an_include_in_a_comment_is_ignored(self):
        self.put("common/a.c", '/*\n#include "agent/agent.h"\n*/\n')
        self.assertEqual(layers.check(self.root), [])


class Identities(Lint):
    def test_metadata_is_not_compared_as_text(self):
        self.put("agent/pods/a.c", "int f(void) {\n        return streq(g(a)->metadata.uid,\n                     uid);\n}\n")
        self.expect(identities.check(self.root), "agent/pods/a.c:2:", "g(a)->metadata.uid, uid")

    def test_each_text_comparison_of_metadata_is_reported(self):
        calls_of = [f"{call}(x, {member})" for call in ("streq", "streq_ptr", "strcmp", "strncmp")
                    for member in ("metadata->name", "a.metadata.namespace", "pod->metadata.uid")]
        self.put("agent/desired/a.h", "".join(f"{one};\n" for one in calls_of))
        self.assertEqual(len(identities.check(self.root)), len(calls_of))

    def test_comparisons_of_other_texts_are_allowed(self):
        self.put("agent/pods/a.c", '/* streq(pod->metadata.uid, uid) */ f(streq(a, "metadata.name"), strdup(pod->metadata.name));\n')
        self.put("agent/model/object-identity.c", "streq(a->metadata.name, b);\n")
        self.put("agent/cli/a.c", "streq(a->metadata.name, b);\n")
        self.assertEqual([one for one in identities.check(self.root) if "needs no exception" not in one], [])

    def test_an_exception_that_is_not_needed_is_reported(self):
        self.put("agent/model/object-identity.c", "\n")
        self.assertEqual(len(identities.check(self.root)), len(identities.FILES))


class Names(Lint):
    def test_a_type_is_defined_once(self):
        self.put("common/a.c", "typedef struct Entry {\n        int a;\n} Entry;\n")
        self.assertEqual(names.check(self.root), [])
        self.put("agent/b.h", "struct Entry {\n        int a;\n};\n")
        self.expect(names.check(self.root), "type Entry")

    def test_a_static_function_is_defined_once(self):
        self.put("common/a.c", "static int find(void) {\n        return 0;\n}\n")
        self.put("common/b.c", "int find_b(void) {\n        return 0;\n}\n")
        self.assertEqual(names.check(self.root), [])
        self.put("agent/b.c", "static void find(void) {\n}\n")
        self.expect(names.check(self.root), "function find")

    def test_a_static_and_an_extern_function_have_different_names(self):
        self.put("common/a.c", "static int find(void) {\n        return 0;\n}\n")
        self.put("agent/b.c", "int find(void) {\n        return 1;\n}\n")
        self.expect(names.check(self.root), "common/a.c:1:", "function find", "agent/b.c:1")

    def test_programs_share_no_name_except_main(self):
        for program in ("cli", "shim"):
            self.put(f"agent/{program}/main.c", "int main(void) {\n        return 0;\n}\n")
            self.put(f"agent/{program}/a.c", "DEFINE_CLEANUP(Entry *, entry_free)\n\nint a;\n}\n")
        self.assertEqual(names.check(self.root), [])
        for program in ("cli", "shim"):
            self.put(f"agent/{program}/b.c", "int find(void) {\n        return 0;\n}\n")
        self.expect(names.check(self.root), "function find")


class Calls(Lint):
    def check(self, line):
        self.put("common/a.c", f"int f(void) {{\n        {line}\n}}\n")
        return calls.check(self.root)

    def test_keys_of_the_projects_own_are_read_in_one_place(self):
        reading = 'x = string_map_get(m, "mainstay.dev/critical");\n'
        self.put("agent/model/own-keys.c", reading)
        self.put("agent/cli/commands.c", 'x = "wait for all pods with the annotation mainstay.dev/critical"; /* "mainstay.dev/" */\n')
        self.assertEqual(calls.check(self.root), [])
        self.put("agent/pods/a.c", reading)
        self.expect(calls.check(self.root), "agent/pods/a.c:1:", "own-keys.h")
        self.put("agent/pods/a.c", "x = string_map_get(m, own_key_name(OWN_KEY_AFTER));\n")
        self.expect(calls.check(self.root), "agent/pods/a.c", "past own_pod_value()")

    def test_forbidden_calls_are_reported(self):
        for call in ('system("ls");', 'return popen("ls", "r");', "strcpy(a, b);", "sprintf(a, b);"):
            self.expect(self.check(call), "common/a.c:2:")

    def test_names_that_resemble_forbidden_calls_are_accepted(self):
        for line in ("file_system(a);", 'say("system(1)");', "/* system(x) */", "x->open(y);", "snprintf(a);"):
            self.assertEqual(self.check(line), [])

    def test_descriptors_close_on_exec(self):
        self.expect(self.check("fd = open(path, O_RDONLY);"), "open() without O_CLOEXEC")
        self.expect(self.check("fd = socket(AF_UNIX, type(1), 0);"), "SOCK_CLOEXEC")
        self.expect(self.check("r = pipe(fds);"), "cannot close on exec")
        self.expect(self.check('f = fopen(path, "r");'), "'e'")
        self.assertEqual(self.check("fd = open(path, flags(1) |\n O_CLOEXEC);"), [])
        self.assertEqual(self.check('f = fopen(path, "re");'), [])

    def test_paths_of_a_machine_are_reported(self):
        self.put("README.md", "see /" + "root/notes\n")
        self.expect(calls.check(self.root), "README.md:1:", "a path of one machine")
        self.put("README.md", "see /proc/1/root/etc\n")
        self.put("tests/corpus/published/fuse.yaml", "mountPath: /" + "root/.cache/\n")
        self.assertEqual(calls.check(self.root), [])

    def test_reminders_in_comments_are_reported(self):
        self.expect(self.check("/* TO" + "DO: more */"), "a reminder")


class Shape(Lint):
    def test_code_without_a_licence_line_is_reported(self):
        self.put("common/a.c", "int a;\n")
        self.expect(shape.check_licences(self.root), "common/a.c:1:")
        self.put("common/a.c", LICENCE)
        self.assertEqual(shape.check_licences(self.root), [])

    def test_scripts_and_examples_are_code_too(self):
        self.put("tests/x", "#!/usr/bin/env bash\n")
        self.expect(shape.check_licences(self.root), "tests/x:1:")
        self.put("tests/x", "")
        self.put("manifests/a.yaml", "kind: Pod\n")
        self.expect(shape.check_licences(self.root), "manifests/a.yaml:1:")

    def test_a_header_without_a_guard_is_reported(self):
        self.put("common/a.h", LICENCE)
        self.expect(shape.check_guards(self.root), "#pragma once")

    def test_two_files_with_one_name_are_reported(self):
        self.put("common/a.h", LICENCE)
        self.assertEqual(shape.check_file_names(self.root), [])
        self.put("agent/model/a.h", LICENCE)
        self.expect(shape.check_file_names(self.root), "a.h is also the name of")

    def test_a_function_that_is_too_long_is_reported(self):
        body = "        x();\n" * (shape.FUNCTION_LINES_MAX - 2)
        self.put("common/a.c", f"static int f(int a) {{\n{body}}}\n")
        self.assertEqual(shape.check_lengths(self.root), [])
        self.put("common/a.c", f"int b;\n\nstatic int f(int a,\n             int b) {{\n{body}}}\n")
        self.expect(shape.check_lengths(self.root), "common/a.c:3: f() has 81 lines")

    def test_a_prototype_does_not_start_a_function(self):
        self.put("common/a.c", "int g(int a,\n      int b);\n" + "\n" * 100 + "int h(void) {\n}\n")
        self.assertEqual(shape.check_lengths(self.root), [])

    def test_literals_that_join_without_a_space_are_reported(self):
        self.put("common/a.c", 'f("see the"\n  "manual");\n')
        self.expect(shape.check_literals(self.root), "common/a.c:2: the text lacks a space")
        self.put("common/a.c", 'f("see the "\n  "manual\\n"\n  "key=a"\n  "b");\n')
        self.assertEqual(shape.check_literals(self.root), [])

    def test_a_long_file_is_reported_and_accepted(self):
        self.put("common/a.c", "int a;\n" * (shape.FILE_LINES_REPORTED + 1))
        with contextlib.redirect_stdout(io.StringIO()) as output:
            self.assertEqual(shape.check_lengths(self.root), [])
        self.assertEqual(output.getvalue(), "long file: common/a.c has 801 lines\n")


class English(Lint):
    def comment(self, text):
        self.put("common/a.c", f"/* {text} */\n")
        return list(english.check(self.root))

    def test_a_sentence_that_does_not_start_with_its_subject_is_reported(self):
        for text in ("What is left is removed.", "Done. Of a pod the name counts.", "That the pod runs is known.", "Where it is set."):
            self.expect(self.comment(text), "common/a.c:1: a sentence starts with its subject")
        for text in ("That pod is gone.", "What do clients need?", "Of these, only one counts.", "See 'What is left'.", "The node, of which"):
            self.assertEqual(self.comment(text), [])

    def test_words_that_no_native_engineer_writes_are_reported(self):
        for text, word in (("The node lacks it.", "lacks"), ("The error is mended.", "mended"), ("0; NULL where it is absent.", "NULL where"),
                           ("It is done by half.", "by half"), ("As with the kubelet, as with the kubelet.", "as with the kubelet")):
            self.expect(self.comment(text), f"'{word}'")
        for text in ("The directory where the images are.", "for lack of memory", "if there is none"):
            self.assertEqual(self.comment(text), [])

    def test_the_second_line_of_a_comment_is_checked(self):
        self.put("common/a.h", "int a; /* The first.\n        * What follows\n        * is bad. */\n")
        self.expect(list(english.check(self.root)), "common/a.h:1:", "'What f'")
        self.put("common/a.h", "")
        self.put("tests/a.py", '"""A module.\n\nWhat is bad."""\n# Fine.\n\n# Where it is bad.\n')
        found = list(english.check(self.root))
        self.assertEqual(sorted(problem.split(": ")[0] for problem in found), ["tests/a.py:3", "tests/a.py:6"])

    def test_wide_lines_and_tables_of_documents_are_reported(self):
        self.put("SECURITY.md", "a " * 51 + "\n")
        self.expect(list(english.check(self.root)), "SECURITY.md:1: has 102 columns, more than 100")
        self.put("SECURITY.md", "")
        self.put("common/README.md", "| " + "a " * 60 + "|\n")
        self.expect(list(english.check(self.root)), "common/README.md:1: has 123 columns, more than 120; make the table a list")
        self.put("common/README.md", "    " + "a " * 60 + "\n```\n" + "a " * 60 + "\n```\n" + "a" * 120 + "\n")
        self.assertEqual(list(english.check(self.root)), [])

    def test_unidiomatic_test_names_are_reported(self):
        self.put("tests/unit/a/test-a.c", "TEST(what_was_cut_is_whole_later)\n{\n}\n\nTEST(a_read_fails_for_lack_of_memory)\n{\n}\n")
        self.put("tests/system/test_a.py", "def test_that_pods_run(node):\n    pass\n")
        self.assertEqual(len(list(english.check(self.root))), 2)


class Pages(Lint):
    PAGE = "# mainstay-x 7 \"\" \"Mainstay\" \"Miscellaneous\"\n\n## NAME\n\nmainstay-x - a page\n\n## TEXT\n\n"

    def put_page(self, rest, name="mainstay-x.7.md"):
        self.put(f"packaging/man/{name}", self.PAGE + rest)
        return pages.check_manuals(self.root)

    def test_a_valid_page_is_accepted(self):
        self.assertEqual(self.put_page("See **mainstay-x**(7).\n\n    code\n"), [])

    def test_a_title_that_differs_from_the_file_name_is_reported(self):
        problems = self.put_page("text\n", "mainstay-y.7.md")
        self.assertEqual(len(problems), 2, problems)
        self.assertIn("the title is not '# mainstay-y 7", problems[0])

    def test_a_reference_to_a_missing_page_is_reported(self):
        self.expect(self.put_page("text\n\nSee **mainstay-y**(7).\n"), "mainstay-x.7.md:11:", "no page mainstay-y(7)")

    def test_a_page_that_is_not_a_source_is_reported(self):
        self.put("packaging/man/mainstay-x.7", ".Dd x\n")
        self.expect(pages.check_manuals(self.root), "mainstay-x.7:", "only sources in Markdown")

    def test_a_line_of_code_that_roff_would_read_as_a_request_is_reported(self):
        self.expect(self.put_page("    code\n    .B code\n"), "mainstay-x.7.md:10:", "starts with .")

    def test_a_broken_link_is_reported(self):
        self.put("a/b.md", "see [this](c.md) and `[that](d.md)`\n")
        self.expect(pages.check_links(self.root), "a/b.md:1:", "there is no c.md")
        self.put("a/c.md", "[up](../a/b.md), [web](https://example.com/)\n")
        self.assertEqual(pages.check_links(self.root), [])

    def test_a_readme_names_functions_and_files_that_exist(self):
        self.put("agent/a/b.c", "int make_b(void);\n")
        self.put("agent/a/README.md", "`make_b()` in `b.c` and `a/b.c`\n")
        self.assertEqual(pages.check_names_in_readmes(self.root), [])
        self.put("agent/README.md", "\n`make_c()`\n")
        self.expect(pages.check_names_in_readmes(self.root), "agent/README.md:2:", "make_c()")

    def test_a_readme_that_is_too_long_or_too_wide_is_reported(self):
        self.put("README.md", "x\n" * 131)
        self.expect(pages.check_readme(self.root), "131 lines")
        self.put("README.md", "é" * 101 + "\n")
        self.expect(pages.check_readme(self.root), "101 columns")

    def test_a_picture_that_is_older_than_its_source_is_reported(self):
        self.put("a.dot", 'digraph a { b [label="one & two\\nthree"] }\n')
        self.put("a.svg", "<svg><text>one &amp; two</text><text>3</text></svg>\n")
        self.expect(pages.check_pictures(self.root), "a.dot", "'three'")

    def test_a_route_that_is_not_documented_is_reported(self):
        self.put("packaging/man/mainstayd.8.md", "`/a`\n: A.\n\n`POST /b`, `/c/`*NAME*\n: B.\n")
        self.put("agent/http/routes.c", '{ "GET",    "/a", x },\n{ "POST", "/b", x },\n{ "GET", "/c/", x },\n{ "POST", "/a", x },\n')
        self.expect(list(pages.check_routes(self.root)), "POST /a is not described")

    def test_list_of_specs_names_tests_that_exist(self):
        self.put("tests/cluster/test_a.py", "def test_b(node):\n    pass\n")
        self.put("tests/cluster/README.md", "`file::name`\n\n| x | `a::b` |\n")
        self.assertEqual(list(pages.check_conformance(self.root)), [])
        self.put("tests/cluster/README.md", "`a::b`\n`a::c`\n")
        self.expect(list(pages.check_conformance(self.root)), "README.md:2: there is no test_c in tests/cluster/test_a.py")

    def test_table_of_faults_names_tests_that_exist_or_is_open(self):
        self.put("tests/system/test_a.py", "def test_b(node):\n    pass\n")
        self.put("tests/unit/m/test-a.c", "TEST(b) {\n}\n")
        self.put("tests/fuzz/fuzz-a.c", "\n")
        self.put("tests/bench/a.py", "def b():\n    pass\n")
        self.put("tests/FAULTS.md", "| id | x |\n| P1 | x | `system/a::b`, `unit/m/a::b`, `bench/a::b` | 1 |\n| P2 | x | `fuzz/a` | 1 |\n"
                 "| P3 | x | *open* | 0 |\n")
        self.assertEqual(list(pages.check_faults(self.root)), [])
        for row, problem in (("`system/a::c`", "there is no test c in tests/system/test_a.py"),
                             ("`unit/m/a::c`", "there is no test c in tests/unit/m/test-a.c"),
                             ("`fuzz/b`", "there is no target tests/fuzz/fuzz-b.c"),
                             ("nothing", "P1 names no test")):
            self.put("tests/FAULTS.md", f"| P1 | x | {row} | 1 |\n")
            self.expect(list(pages.check_faults(self.root)), f"FAULTS.md:1: {problem}")

    def test_each_cell_of_a_table_of_security_names_tests_that_exist(self):
        self.put("tests/system/test_a.py", "def test_b(node):\n    pass\n")
        self.put("tests/unit/m/test-a.c", "TEST(b) {\n}\n")
        page = ("# Security\n\n## T\n\n| | x (1) | y |\n|---|---|---|\n| r | none | all (1, 2) |\n\n"
                "1. `test_a.py`: `test_b`;\n   `tests/unit/m/test-a.c`: `b`\n2. `test_a.py`: `test_b`\n\n## Other\n\n| a |\n|---|\n| b |\n")
        self.put("SECURITY.md", page)
        self.assertEqual(list(pages.check_security(self.root)), [])
        for old, new, problem in (("`b`\n", "`c`\n", "1. there is no tests/unit/m/test-a.c: c"),
                                  ("2. `test_a.py`: `test_b`", "2. `test_b.py`: `test_b`", "2. there is no tests/system/test_b.py: test_b"),
                                  ("2. `test_a.py`: `test_b`", "2. `test_a.py`", "2. names no test"),
                                  ("(1, 2)", "(1)", "no cell names 2"), ("(1, 2)", "(1, 2, 3)", "there is no 3. in the list"),
                                  ("x (1)", "x", "the cell 'none' of 'r' names no test")):
            self.put("SECURITY.md", page.replace(old, new))
            self.expect(list(pages.check_security(self.root)), f"SECURITY.md: T: {problem}")

    def test_a_reason_that_is_not_documented_is_reported(self):
        self.put("packaging/man/mainstay-troubleshooting.7.md", "`Known`\n: It is.\n")
        self.put("agent/pods/probe/a.c", '/* "Comment" */\nf("Known", "Pod",\n  "mainstay.io/NewReason");\n')
        self.expect(pages.check_reasons(self.root), "agent/pods/probe/a.c:3:", "mainstay.io/NewReason is not explained")


class Tools(Lint):
    def test_a_name_that_two_objects_define_is_reported(self):
        for name, function in (("a", "f"), ("b", "g"), ("c", "f")):
            self.put(f"build/x/{name}.c", f"int {function}(void);\nint {function}(void) {{\n        return 0;\n}}\n")
        build = os.path.join(self.root, "build")
        subprocess.run(["clang", "-c", "a.c", "b.c", "c.c"], cwd=f"{build}/x", check=True)
        subprocess.run(["ar", "rc", "libx.a", "a.o", "b.o"], cwd=f"{build}/x", check=True)
        self.assertEqual(tools.check_names(self.root, build), [])
        subprocess.run(["ar", "rc", "libx.a", "c.o"], cwd=f"{build}/x", check=True)
        self.expect(tools.check_names(self.root, build), "f is defined in a.o and c.o")

    def test_a_fuzz_target_without_coverage_is_reported(self):
        project = "cmake_minimum_required(VERSION 3.25)\nproject(x C)\nadd_library(common STATIC common/utf8.c)\n"
        self.put("common/utf8.c", "int f(void);\nint f(void) {\n        return 0;\n}\n")
        self.put("CMakeLists.txt", project + "if(MAINSTAY_FUZZER)\n"
                 "        target_compile_options(common PRIVATE -fsanitize=fuzzer-no-link)\nendif()\n")
        self.assertEqual(tools.check_fuzzer(self.root), [])
        self.put("CMakeLists.txt", project)
        problems = tools.check_fuzzer(self.root)
        self.assertEqual(problems[0], "common/utf8.c: is not instrumented with MAINSTAY_FUZZER=ON")
        self.assertIn("lacks the symbols of coverage", problems[1])

    def test_unformatted_code_is_reported(self):
        shutil.copy(os.path.join(TOP, ".clang-format"), self.root)
        self.put("common/a.c", "int a;\n")
        self.assertEqual(tools.check_format(self.root), [])
        self.put("common/a.c", "int  a ;\n")
        self.assertIn("common/a.c:1", "\n".join(tools.check_format(self.root)))

    def test_shellcheck_warnings_are_reported(self):
        self.put("tests/x", "#!/usr/bin/env bash\necho \"$1\"\n")
        self.assertEqual(tools.check_shell(self.root), [])
        self.put("tests/x", "#!/usr/bin/env bash\nrm -rf $1/*\n")
        self.assertIn("SC2086", "\n".join(tools.check_shell(self.root)))

    def test_spelling_errors_are_reported(self):
        self.put("README.md", "received\n")
        self.assertEqual(tools.check_spelling(self.root), [])
        self.put("README.md", "rec" + "ieved\n")
        self.assertIn("README.md:1", "\n".join(tools.check_spelling(self.root)))

    def tidy(self, text, **options):
        """The findings in common/a.c."""
        shutil.copy(os.path.join(TOP, ".clang-tidy"), self.root)
        source = self.put("common/a.c", text)
        self.put("build/compile_commands.json",
                 f'[{{"directory": "{self.root}", "command": "clang -Wall -I{self.root} -c {source}", "file": "{source}"}}]')
        with unittest.mock.patch.dict(os.environ, {"XDG_CACHE_HOME": f"{self.root}/build"}):
            return "\n".join(tools.check_tidy(self.root, os.path.join(self.root, "build"), **options))

    def test_clang_tidy_warnings_are_reported(self):
        self.assertEqual(self.tidy("int f(int a);\nint f(int a) {\n        return a + 1;\n}\n"), "")
        self.assertIn("readability-identifier-naming",
                      self.tidy("int Bad_Name(int a);\nint Bad_Name(int a) {\n        return a;\n}\n"))

    def test_clang_warnings_are_reported(self):
        self.assertIn("clang-diagnostic-unused-variable",
                      self.tidy("int f(void);\nint f(void) {\n        int a;\n        return 1;\n}\n"))

    def test_sources_are_checked_again_after_a_change_of_a_header(self):
        text = '#include "common/a.h"\nint f(void);\nint f(void) {\n        return 1;\n}\n'
        self.put("common/a.h", "#pragma once\n")
        self.assertEqual(self.tidy(text), "")
        self.put("common/a.h", "#pragma once\nint g(int Bad);\n")
        self.assertIn("readability-identifier-naming", self.tidy(text))

    def test_clang_analyzer_warnings_are_reported_only_on_request(self):
        text = "int f(int *a);\nint f(int *a) {\n        if (!a)\n                return *a;\n        return 0;\n}\n"
        self.assertEqual(self.tidy(text, with_analyzer=False), "")
        self.assertIn("clang-analyzer-core.NullDereference", self.tidy(text))

    def test_cppcheck_errors_are_reported(self):
        text = "int f(int i);\nint f(int i) {\n        int a[2] = { 1, 2 };\n        return a[i > 3 ? i : 2];\n}\n"
        for wanted, source in (("arrayIndexOutOfBounds", text), ("", text.replace("a[i > 3 ? i : 2]", "a[i > 3 ? 0 : 1]"))):
            self.tidy(source)
            self.assertIn(wanted, "\n".join(tools.check_cppcheck(self.root, os.path.join(self.root, "build"))))
        self.assertEqual(tools.check_cppcheck(self.root, os.path.join(self.root, "build")), [])

    def analyze(self, text, suppressions=""):
        """The findings of gcc in common/a.c."""
        self.tidy(text)
        return gcc_analyzer.check(self.root, os.path.join(self.root, "build"), self.put("build/suppressions.txt", suppressions))

    def test_gcc_analyzer_warnings_are_reported(self):
        text = "#include <stdlib.h>\nint f(int i);\nint f(int i) {\n        char *a = malloc(10);\n" \
               "        if (i)\n                return 1;\n        free(a);\n        return 0;\n}\n"
        row = "malloc-leak common/a.c:f\n"
        self.expect(self.analyze(text), "common/a.c:6: f(): leak of 'a'", "[malloc-leak]")
        self.assertEqual(self.analyze(text, "// A reason.\n" + row), [])
        self.expect(self.analyze(text, "// A reason.\n\n// Another.\n" + row + row), "line 5 is there twice")
        self.assertIn("line 1 is without a reason", "\n".join(self.analyze(text, row)))
        self.expect(self.analyze(text, "// A reason.\n" + row + "malloc-leak f\n"), "line 3 is not")
        self.expect(self.analyze(text.replace("return 1", "i = 0"), "// A reason.\n" + row), "gcc does not find", "common/a.c:f")
        self.assertTrue(self.analyze('#include "missing.h"\n'))

    def test_gcc_analyzer_warnings_in_a_header_belong_to_the_source(self):
        self.put("common/a.h", "#include <stdlib.h>\nstatic inline void g(char **p) {\n        free(*p);\n}\n")
        text = '#include "common/a.h"\nint f(void);\nint f(void) {\n        char *a = malloc(10);\n        g(&a);\n        g(&a);\n' \
               "        return 0;\n}\n"
        self.expect(self.analyze(text), "common/a.h:3: g(): double-", "[double-free]")
        self.assertEqual(self.analyze(text, "// A reason.\ndouble-free common/a.c:g\n"), [])


if __name__ == "__main__":
    unittest.main()
