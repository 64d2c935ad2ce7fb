//! Renders Markdown of an agent as HTML. HTML inside the Markdown is shown as text, images become their description, and links keep
//! their target only if it is a web or mail address.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};

use super::blocks::escaped;

/// Renders a text. The result consists of complete elements, whatever the text is.
pub(super) fn markdown_html(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::default();
    for event in Parser::new_ext(text, options) {
        writer.event(event);
    }
    match writer.html.is_empty() {
        true => String::new(),
        false => format!("<div class=\"prose\">{}</div>\n", writer.html),
    }
}

#[derive(Default)]
struct Writer {
    html: String,
    /// Whether each open link has a target.
    links: Vec<bool>,
    alignments: Vec<Alignment>,
    column: usize,
    in_table_head: bool,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.html.push_str(&escaped(&text));
            }
            Event::Code(code) => {
                self.html.push_str(&format!("<code>{}</code>", escaped(&code)));
            }
            // A single line break of the agent is kept: many agents break lines on purpose.
            Event::SoftBreak | Event::HardBreak => self.html.push_str("<br>\n"),
            Event::Rule => self.html.push_str("<hr>\n"),
            Event::TaskListMarker(done) => self.html.push_str(if done { "☑ " } else { "☐ " }),
            // Not enabled.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.html.push_str(&escaped(&text));
            }
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Paragraph => self.html.push_str("<p>"),
            Tag::Heading { level, .. } => self.html.push_str(&format!("<{}>", heading(*level))),
            Tag::BlockQuote(_) => self.html.push_str("<blockquote>"),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.split([' ', ',']).next().unwrap_or_default(),
                    CodeBlockKind::Indented => "",
                };
                self.html.push_str(&match language {
                    "" => "<pre>".to_owned(),
                    language => format!("<pre data-language=\"{}\">", escaped(language)),
                });
            }
            Tag::List(None) => self.html.push_str("<ul>\n"),
            Tag::List(Some(1)) => self.html.push_str("<ol>\n"),
            Tag::List(Some(first)) => self.html.push_str(&format!("<ol start=\"{first}\">\n")),
            Tag::Item => self.html.push_str("<li>"),
            Tag::Table(alignments) => {
                self.alignments.clone_from(alignments);
                self.html.push_str("<div class=\"scroll\"><table>\n");
            }
            Tag::TableHead => {
                (self.in_table_head, self.column) = (true, 0);
                self.html.push_str("<tr>");
            }
            Tag::TableRow => {
                self.column = 0;
                self.html.push_str("<tr>");
            }
            Tag::TableCell => self.cell(),
            Tag::Emphasis => self.html.push_str("<em>"),
            Tag::Strong => self.html.push_str("<strong>"),
            Tag::Strikethrough => self.html.push_str("<s>"),
            Tag::Link {
                link_type, dest_url, ..
            } => self.link(*link_type, dest_url),
            // The description of an image is its content.
            Tag::Image { .. } => self.html.push_str("[image: "),
            // Not enabled, or without an element of their own.
            Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.html.push_str("</p>\n"),
            TagEnd::Heading(level) => self.html.push_str(&format!("</{}>\n", heading(level))),
            TagEnd::BlockQuote(_) => self.html.push_str("</blockquote>\n"),
            TagEnd::CodeBlock => self.html.push_str("</pre>\n"),
            TagEnd::List(false) => self.html.push_str("</ul>\n"),
            TagEnd::List(true) => self.html.push_str("</ol>\n"),
            TagEnd::Item => self.html.push_str("</li>\n"),
            TagEnd::Table => self.html.push_str("</table></div>\n"),
            TagEnd::TableHead => {
                self.in_table_head = false;
                self.html.push_str("</tr>\n");
            }
            TagEnd::TableRow => self.html.push_str("</tr>\n"),
            TagEnd::TableCell => {
                self.html
                    .push_str(if self.in_table_head { "</th>" } else { "</td>" });
            }
            TagEnd::Emphasis => self.html.push_str("</em>"),
            TagEnd::Strong => self.html.push_str("</strong>"),
            TagEnd::Strikethrough => self.html.push_str("</s>"),
            TagEnd::Link => {
                if self.links.pop() == Some(true) {
                    self.html.push_str("</a>");
                }
            }
            TagEnd::Image => self.html.push(']'),
            TagEnd::HtmlBlock
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn cell(&mut self) {
        let name = if self.in_table_head { "th" } else { "td" };
        let class = match self.alignments.get(self.column) {
            Some(Alignment::Right) => " class=\"right\"",
            Some(Alignment::Center) => " class=\"center\"",
            Some(Alignment::Left | Alignment::None) | None => "",
        };
        self.column += 1;
        self.html.push_str(&format!("<{name}{class}>"));
    }

    fn link(&mut self, link_type: LinkType, target: &str) {
        let is_web = target.starts_with("https://") || target.starts_with("http://");
        let has_target = is_web || target.starts_with("mailto:") || link_type == LinkType::Email;
        self.links.push(has_target && !target.is_empty());
        if self.links.last() == Some(&true) {
            let scheme = if link_type == LinkType::Email {
                "mailto:"
            } else {
                ""
            };
            self.html.push_str(&format!(
                "<a href=\"{scheme}{}\" rel=\"noopener noreferrer nofollow\" target=\"_blank\">",
                escaped(target)
            ));
        }
    }
}

/// Headings of an agent are below the headings of the page.
fn heading(level: HeadingLevel) -> &'static str {
    match level {
        HeadingLevel::H1 | HeadingLevel::H2 => "h3",
        HeadingLevel::H3 => "h4",
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => "h5",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_elements_are_rendered() {
        let text = "# Done\n\nI **fixed** `a < b`:\n- [x] one\n- two\n\n```rust\nlet x = \"<b>\";\n```\n\n| a | b |\n|--:|---|\n| 1 | 2 |\n";
        insta::assert_snapshot!(markdown_html(text), @r#"
        <div class="prose"><h3>Done</h3>
        <p>I <strong>fixed</strong> <code>a &lt; b</code>:</p>
        <ul>
        <li>☑ one</li>
        <li>two</li>
        </ul>
        <pre data-language="rust">let x = &quot;&lt;b&gt;&quot;;
        </pre>
        <div class="scroll"><table>
        <tr><th class="right">a</th><th>b</th></tr>
        <tr><td class="right">1</td><td>2</td></tr>
        </table></div>
        </div>
        "#);
    }

    #[test]
    fn html_and_unsafe_links_of_an_agent_are_text() {
        let text = "<script>alert(1)</script> <b onclick=x>bold</b>\n\n<div>\nblock\n</div>\n\n[a](javascript:alert(1)) [b](data:text/html,x) ![i](https://evil/x.png) [c](https://ok.example/\"onmouseover=x)";
        insta::assert_snapshot!(markdown_html(text), @r#"
        <div class="prose">&lt;script&gt;alert(1)&lt;/script&gt; &lt;b onclick=x&gt;bold&lt;/b&gt;
        &lt;div&gt;
        block
        &lt;/div&gt;
        <p>a b [image: i] <a href="https://ok.example/&quot;onmouseover=x" rel="noopener noreferrer nofollow" target="_blank">c</a></p>
        </div>
        "#);
    }

    #[test]
    fn every_element_is_closed() {
        for text in [
            "**a",
            "```\ncode",
            "- a\n  - b",
            "[x](y",
            "| a |\n|---|\n| b",
            "> q\n> - [ ] z",
            "~~x",
        ] {
            let html = markdown_html(text);
            let opened =
                html.matches('<').count() - html.matches("</").count() - html.matches("<br>").count();
            assert_eq!(opened, html.matches("</").count(), "{text}: {html}");
        }
    }
}
