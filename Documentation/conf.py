# SPDX-License-Identifier: GPL-2.0
"""
How Sphinx turns these pages, and the reference that tools/docs.sh makes of fairwq.h, into
HTML. The pages are plain reStructuredText, so that they can also be read as they are, and on
sites that know no Sphinx. What only Sphinx knows is added here: the tree of contents, and
links from the names of pages and functions.
"""
import re

from docutils import nodes
from sphinx import addnodes

project = "fairwq"
html_theme = "alabaster"
html_theme_options = {
    "description": "fair shares of one pool of workers",
    "page_width": "68em",
    "sidebar_width": "16em",
    "fixed_sidebar": True,
    "show_powered_by": False,
}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
html_static_path = ["custom.css"]  # the theme asks for it
html_copy_source = False
html_show_copyright = False
highlight_language = "none"
smartquotes = False

PAGE = re.compile(r"(?:Documentation/)?([\w-]+)\.rst(#[\w-]+)?$")
NAME = re.compile(r"(?:(?:struct|enum)\s+)?((?:fairwq|FAIRWQ|DEFINE_FAIRWQ)_\w+)(?:\(\))?$")
WORD = re.compile(r"(\bDocumentation/[\w-]+\.rst\b|\b(?:DEFINE_)?(?:fairwq|FAIRWQ)_\w+\(\))")


def add_contents(app, docname, source):
    """Add the pages to index, in the order in which it names them, and the reference."""
    if docname != "index":
        return
    pages = list(dict.fromkeys(re.findall(r"<([\w-]+)\.rst>`_", source[0])))
    tree = ["", ".. toctree::", "   :hidden:", "", *(f"   {page}" for page in pages),
            "   reference/index", ""]
    source[0] += "\n".join(tree)


def target_of(env, text):
    """Return what a word names: the domain, kind and name of it; or None."""
    page, name = PAGE.match(text), NAME.match(text)
    if page and page.group(1) in env.found_docs:
        return "std", "doc", "/" + page.group(1)
    if text == "fairwq.h":
        return "std", "doc", "/reference/index"
    return ("c", "identifier", name.group(1)) if name else None


def make_link(env, text, content):
    """Return @content as a link to what @text names, or as it is."""
    target = target_of(env, text)
    if not target or target[2].startswith(f"/{env.docname}"):
        return content
    domain, kind, name = target
    link = addnodes.pending_xref("", content, refdomain=domain, reftype=kind, reftarget=name,
                                 refexplicit=True, refdoc=env.docname, refwarn=kind == "doc")
    return link


def is_plain(node):
    """Check whether a text may get links: it is prose, and no link itself."""
    while node.parent:
        node = node.parent
        if isinstance(node, (nodes.literal, nodes.literal_block, nodes.reference, nodes.title,
                             addnodes.pending_xref, addnodes.desc_signature)):
            return False
    return True


def link_words(env, doctree):
    """Let words in the prose that name a page or a function lead there."""
    for text in [node for node in doctree.findall(nodes.Text) if is_plain(node)]:
        parts = WORD.split(text.astext())
        if len(parts) > 1:
            text.parent.replace(text, [make_link(env, part, nodes.Text(part)) if i % 2 else
                                       nodes.Text(part) for i, part in enumerate(parts)])


def link_pages(env, doctree):
    """Let links to the source of a page lead to the page."""
    for node in list(doctree.findall(nodes.reference)):
        page = PAGE.match(node.get("refuri", ""))
        if page and page.group(2):  # tools/docs.sh looks for the anchor
            node["refuri"] = f"{page.group(1)}.html{page.group(2)}"
        elif page:
            node.replace_self(make_link(env, node["refuri"], nodes.inline("", node.astext())))


def link_literals(env, doctree):
    for node in list(doctree.findall(nodes.literal)):
        if not isinstance(node.parent, (nodes.reference, addnodes.pending_xref, nodes.title)):
            link = make_link(env, node.astext(), node.deepcopy())
            if isinstance(link, addnodes.pending_xref):
                node.replace_self(link)


def colour_code(doctree):
    """Colour what looks like C. Pictures, tables and what a shell has shown stay plain."""
    for node in doctree.findall(nodes.literal_block):
        if "language" not in node and re.search(r"[;{]$|;\s+/\*|^\s*struct ", node.astext(), re.M):
            node["language"], node["force"] = "c", True


def mend(app, doctree):
    link_pages(app.env, doctree)
    link_words(app.env, doctree)
    link_literals(app.env, doctree)
    colour_code(doctree)


def setup(app):
    app.connect("source-read", add_contents)
    app.connect("doctree-read", mend)
    return {"parallel_read_safe": True}
