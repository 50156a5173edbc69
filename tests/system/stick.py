# SPDX-License-Identifier: Apache-2.0
"""USB sticks: file systems that are mounted where a node looks for them, and that can be pulled out."""

import os

import world


class Stick:
    """'mount' has the arguments of mount(8) before the directory; without any, the stick is a file system in memory."""

    def __init__(self, directory, place, *mount):
        self.directory, self.place = str(directory), str(place)
        os.mkdir(self.directory)
        world.run("mount", *(mount or ("-t", "tmpfs", "stick")), self.directory)

    def plug(self, *options):
        world.run("mount", "--bind", self.directory, self.place)
        if options:
            world.run("mount", "-o", ",".join(("remount", "bind", *options)), self.place)

    def pull(self):
        world.run("umount", "--lazy", self.place)

    def remove(self):
        while world.mount_at("self", self.place):
            self.pull()
        world.run("umount", "--lazy", self.directory)
