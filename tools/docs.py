#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
docs.py man HEADER OUT          kernel-doc's man output, from stdin, into one file for each name
docs.py rst HEADER OUT          kernel-doc's rst output, from stdin, into one page for each section
docs.py links DIR               check the links of the HTML files below the folder
docs.py mentions HEADER FILE... check that functions that the guides name are described, or in
                                the source

Called by docs.sh. The pages' words are kernel-doc's. This sorts them by the sections of the
header, and mends what a reader would trip over.
"""
import html.parser
import os
import re
import subprocess
import sys
import urllib.parse

SECTION = re.compile(r"^(?:/\*| \*) ---- (\w[\w ]*?) -+", re.M)
NAME = re.compile(r"^/\*\*\n \* (?:(?:struct|enum|union|typedef) )?(\w+) - (.*)", re.M)
VERSION = re.compile(r"^#define FAIRWQ_VERSION_(?:MAJOR|MINOR|PATCH)\s+(\d+)", re.M)
# Headings of kernel-doc, as other man pages have them.
HEADINGS = {"Members": "MEMBERS", "Description": "DESCRIPTION", "Constants": "CONSTANTS",
            "Context": "CONTEXT", "Return": "RETURN VALUE", "RETURN": "RETURN VALUE"}


class Header:
    """The header: its head, and its sections with the names that each describes."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.text = f.read()
        self.version = ".".join(VERSION.findall(self.text))
        self.head = re.search(r"^/\*\n(.*?)\n \*/", self.text, re.M | re.S).group(1)
        parts = SECTION.split(self.text)
        self.sections = list(zip(["Version"] + parts[1::2], parts[::2]))
        self.purpose = dict(NAME.findall(self.text))

    def names(self, text=None):
        return [name for name, _ in NAME.findall(self.text if text is None else text)]

    def related(self, name):
        """Return the other names of the section that describes @name."""
        for _, text in self.sections:
            names = self.names(text)
            if name in names:
                return [other for other in names if other != name]
        return []


def die(text):
    sys.exit(f"error: {text}")


def uncomment(text):
    """Take the stars off a comment. Return its paragraphs."""
    lines = [re.sub(r"^ \*(?: |$)", "", line) for line in text.splitlines()]
    out = []
    for paragraph in re.split(r"\n(?:[ \t]*\n)+", "\n".join(lines).strip("\n")):
        if out and paragraph.startswith(" ") and out[-1].startswith(" "):
            out[-1] += "\n\n" + paragraph
        elif paragraph.strip():
            out.append(paragraph)
    return out


def is_literal(paragraph):
    """Check whether a paragraph is code or a table, whose line breaks count."""
    return paragraph.startswith(" ") or re.search(r"\S {3}", paragraph)


def intro(text):
    """Return the plain comment at the beginning of a section, or in which it begins."""
    found = re.match(r"(?: \*/)?\s*\n/\*\n(.*?)\n \*/|\n( \*.*?)\n \*/", text, re.S)
    return found.group(1) or found.group(2) if found else ""


def split_by(pattern, text, names):
    """Cut a text in front of each match, which must come in the order of @names."""
    parts = re.split(pattern, text, flags=re.M)
    found = parts[1::2]
    if found != names:
        die(f"kernel-doc and the header differ: {sorted(set(found) ^ set(names)) or 'in order'}")
    return zip(found, parts[2::2])


# ---- man pages ---------------------------------------------------------------

def see_also(names):
    return ['.SH "SEE ALSO"', ",\n".join(f".BR {name} (9)" for name in names)]


def title(name, date, version):
    return f'.TH "{name}" 9 "{date}" "fairwq {version}" "Kernel API Manual"'


def man_references(line, header, own):
    """Mark the functions that a line names, with their section if they have a page."""
    def reference(match):
        name = match.group(1)
        if name in header.purpose and name != own:
            return f"\\fB{name}\\fP(9)"
        return f"\\fB{name}\\fP()" if f"{name}()" in header.text else match.group(0)
    return re.sub(r"\\fB(\w+)\\fP(?!\()", reference, line)


def synopsis(lines):
    """Lay out what kernel-doc has put between .SH SYNOPSIS and the next heading."""
    words = [re.sub(r"^\.BI? ", "", line) for line in lines if line != ".br"]
    text = re.sub(r"\s+", " ", " ".join(words).replace('"', "")).strip()
    text = re.sub(r" ([,;)])", r"\1", text).replace(" (", "(", 0 if "{" in text else 1)
    if "{" not in text:
        return [f'.B "{text}"']
    end = "," if text.startswith("enum") else ";"
    head, body = re.match(r"(.*?\{) ?(.*?) ?\};$", text).groups()
    fields = [f"    {field.strip()}{end}" for field in body.split(end) if field.strip()]
    return [".nf", head, *(fields or ["    ..."]), "};", ".fi"]


def man_parts(text):
    """Split a page into its headings and their lines, up to SEE ALSO."""
    parts = {}
    for line in text.splitlines():
        heading = re.match(r'\.SH "?(.*?)"?$', line)
        if heading:
            part = parts.setdefault(HEADINGS.get(heading.group(1), heading.group(1)), [])
        elif line:
            part.append(line)
    del parts["SEE ALSO"]
    return {heading: lines for heading, lines in parts.items() if lines != [".br"] and lines}


def man_body(name, text, header):
    parts = man_parts(text)
    # One word, so that "man NAME" and "apropos" agree; the synopsis says what it is.
    parts["NAME"] = [re.sub(rf"^\w+ {name} ", f"{name} ", line) for line in parts["NAME"]]
    typedef = re.search(rf"^typedef [^;]*\b{name}\)?\([^;]*;", header.text, re.M)
    shape = [f'.B "{typedef.group(0)}"'] if typedef else synopsis(parts["SYNOPSIS"])
    parts["SYNOPSIS"] = [".B #include <fairwq.h>", ".PP", *shape]
    return [man_references(line, header, name) for heading, lines in parts.items()
            for line in (f'.SH "{heading}"', *lines)]


def man_paragraph(text):
    text = re.sub(r"\*(\w+)\*", r"\\fI\1\\fP", text.replace("\\", "\\e"))
    return [".PP", ".nf", text, ".fi"] if is_literal(text) else [".PP", text]


def overview(header, date):
    """Make fairwq(9) of the head of the header."""
    lines = [title("fairwq", date, header.version), ".nh", ".ad l", ".SH NAME",
             r"fairwq \- fair shares of one pool of workers between its clients",
             ".SH SYNOPSIS", ".B #include <fairwq.h>", ".SH DESCRIPTION"]
    for paragraph in uncomment(header.head):
        lines += man_paragraph(paragraph)
    for section, text in header.sections:
        lines += [f".SS {section}"]
        for name in header.names(text):
            lines += [".TP", f".BR {name} (9)", header.purpose[name]]
        if not header.names(text):
            lines += [line for p in uncomment(intro(text)) for line in man_paragraph(p)]
    return "\n".join(lines) + "\n"


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def make_man(header, text, out):
    date = re.search(r'^\.TH ".*?" 9 "(.*?)"', text, re.M).group(1)
    pages = split_by(r'^\.TH "(?:\w+ )?(\w+)" 9 .*\n', text, header.names())
    for name, body in pages:
        page = [title(name, date, header.version), ".nh", ".ad l"]
        page += man_body(name, body, header) + see_also(["fairwq"] + header.related(name))
        write(f"{out}/{name}.9", "\n".join(page) + "\n")
    write(f"{out}/fairwq.9", overview(header, date))


# ---- pages for Sphinx --------------------------------------------------------

def rst_paragraphs(text):
    """Turn a plain comment into rst: code and tables stay as they are."""
    out = []
    for paragraph in uncomment(text):
        if is_literal(paragraph):
            paragraph = "::\n\n" + "\n".join("  " + line for line in paragraph.splitlines())
        out.append(re.sub(r"@(\w+)", r"**\1**", paragraph))
    return "\n\n".join(out)


def constants(text):
    """Return the #define lines of plain values, with the comments in front of them."""
    define = r"#define FAIRWQ_\w+[ \t]+(?:.*\\\n)*.*\n"
    found = re.findall(rf"^((?:/\* .*? \*/\n|/\*\n(?: \*[^/].*\n| \*\n)+ \*/\n)?(?:{define})+)",
                       text, re.M)
    return "\n".join(found)


def heading(text, line="="):
    return f"{text}\n{line * len(text)}\n"


def reference_page(section, text, header, chunks):
    page = [heading(section), rst_paragraphs(intro(text))]
    names = header.names(text)
    page += ["\n".join(f"* :c:func:`{name}`: {header.purpose[name]}" for name in names)]
    defines = constants(text)
    if defines:
        page += [heading("Constants", "-"), ".. code-block:: c\n\n" +
                 "\n".join("  " + line for line in defines.expandtabs().splitlines())]
    if names:
        page += [heading("Descriptions", "-")]
    page += [chunks[name] for name in names]
    return "\n\n".join(part for part in page if part.strip()) + "\n"


def make_rst(header, text, out):
    directive = r"(?=^\.\. c:\w+:: (?:.*?\b(\w+) \(.*|(\w+))$)"
    parts = [p for p in re.split(r"(?=^\.\. c:\w+:: )", text, flags=re.M) if p.strip()]
    chunks = {}
    for part in parts:
        found = re.match(directive, part, re.M)
        # Of a struct of which nothing is public only the name is there.
        part = re.sub(r"\{\n    \};\n\n  \*\*Members\*\*\n", "{\n        ...\n    };\n", part)
        chunks[found.group(1) or found.group(2)] = part
    if list(chunks) != header.names():
        die(f"kernel-doc and the header differ: {sorted(set(chunks) ^ set(header.names()))}")
    tree = []
    rest = []
    for section, content in header.sections:
        if not header.names(content):
            rest += [heading(section, "-"), rst_paragraphs(intro(content))]
            continue
        tree += [section.lower().replace(" ", "-")]
        write(f"{out}/{tree[-1]}.rst", reference_page(section, content, header, chunks))
    index = [heading(f"Reference: fairwq.h {header.version}"), rst_paragraphs(header.head),
             heading("Sections", "-"), ".. toctree::\n   :maxdepth: 1\n\n" +
             "\n".join(f"   {name}" for name in tree)]
    write(f"{out}/index.rst", "\n\n".join(index + rest) + "\n")


# ---- checks ------------------------------------------------------------------

class Page(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        with open(path, encoding="utf-8") as f:
            self.feed(f.read())

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key in ("href", "src") and value:
                self.links.append(value)
            elif key == "id" or (key == "name" and tag == "a"):
                self.anchors.add(value)


def dead(path, link, pages):
    """Say why a link of the page at @path leads nowhere, or return None."""
    to, _, anchor = link.partition("#")
    target = path
    if to:
        target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(to)))
    if target not in pages:
        return None if os.path.isfile(target) and not anchor else "there is no such file"
    if anchor and urllib.parse.unquote(anchor) not in pages[target].anchors:
        return "there is no such anchor"
    return None


def check_links(folder):
    pages = {}
    for base, _, files in os.walk(folder):
        for name in files:
            if name.endswith(".html"):
                path = os.path.normpath(os.path.join(base, name))
                pages[path] = Page(path)
    external, bad, nr = set(), 0, 0
    for path, page in sorted(pages.items()):
        for link in page.links:
            nr += 1
            if urllib.parse.urlparse(link).scheme or link.startswith("//"):
                external.add(link)
                continue
            why = dead(path, link, pages)
            if why:
                print(f"{os.path.relpath(path, folder)}: {link}: {why}")
                bad += 1
    print(f"{len(pages)} pages, {nr} links, {bad} dead; "
          f"{len(external)} different links to elsewhere, which are not fetched")
    return bool(bad) or not nr


def check_mentions(header, files):
    source = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(files[0])), "grep",
                             "-hoE", r"\bfairwq_\w+\(", "--", ":/*.[ch]"],
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    known = set(header.names()) | {line[:-1] for line in source.split()}
    bad = 0
    for path in files:
        with open(path, encoding="utf-8") as f:
            for nr, line in enumerate(f, 1):
                for name in set(re.findall(r"\b(fairwq_\w+)\(\)", line)) - known:
                    print(f"{path}:{nr}: there is no {name}()")
                    bad += 1
    return bool(bad)


def main(command, *args):
    if command == "links":
        return check_links(args[0])
    header = Header(args[0])
    if command == "mentions":
        return check_mentions(header, args[1:])
    make = {"man": make_man, "rst": make_rst}[command]
    return make(header, sys.stdin.read(), args[1])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
