"""Forms in a browser that are sent with something wrong in them."""

from dataclasses import dataclass, field

TAMPER = """
(field, value) => {
  if (field.tagName === "SELECT") field.options[field.selectedIndex].value = value;
  if (field.tagName === "FIELDSET") Object.assign(field.querySelector("input"), { checked: true, value });
}
"""


@dataclass
class Form:
    """A form that is sent with something wrong in it, past the checks of the browser; `wrong` is that field's id."""

    wrong: str
    path: str
    button: str
    values: dict = field(default_factory=dict)
    inside: str = ""  # the closed part that it stands in

    def send(self, page, base, ids):
        page.goto(base + self.path.format(**ids))
        form = page.locator("form", has=page.locator(f"#{self.wrong.format(**ids)}"))
        form.evaluate("form => { form.noValidate = true; }")
        if self.inside:
            page.locator("summary", has_text=self.inside).click()
        for name, value in self.values.items():
            self._fill(form.locator(f"#{name.format(**ids)}"), value)
        button = form.get_by_role("button", name=self.button, exact=True)
        if button.is_visible():
            button.click()
        else:  # the script sends it when something changes
            with page.expect_navigation():
                form.dispatch_event("change")

    def _fill(self, one, value):
        if one.evaluate("field => ['INPUT', 'TEXTAREA'].includes(field.tagName)"):
            one.evaluate("field => { field.removeAttribute('maxlength'); }")
            one.fill(value)
        else:
            one.evaluate(TAMPER, value)
