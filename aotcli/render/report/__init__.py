"""The HTML report: one file that holds a planned step, the pictures of it, and the script that shows them.

    page.py      the file: skeleton, style, script and data put together, and the policy that forbids network
    document.py  the data, as compact columns; numbers are raw, texts are shared
    template.html, *.css, *.js   what the browser runs; script files are joined in the order of page.SCRIPTS

The browser computes nothing about the step that could be computed here: it looks up, filters, sorts and draws.
"""
