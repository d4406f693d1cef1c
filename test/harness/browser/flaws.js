(() => {
  const out = [], width = document.documentElement.clientWidth, slack = 1;
  const called = (e) => `${e.tagName.toLowerCase()} ${JSON.stringify(e.textContent.trim().slice(0, 60))}`;
  const clipped = (e) => e && (getComputedStyle(e).clipPath !== "none" || clipped(e.parentElement));
  const seen = (e) => e.checkVisibility() && !e.closest("defs") && !clipped(e);
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (node.data.trim() && parent.localName !== "title" && seen(parent)) texts.push(node);
  }

  // Text and boxes stay within the window, and text within its box.
  if (document.documentElement.scrollWidth > width) out.push(`outside of the window: ${document.documentElement.scrollWidth} pixels of ${width}`);
  for (const e of document.body.querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (box.width && seen(e) && (box.right > width + slack || box.left < -slack)) out.push(`outside of the window: ${called(e)}`);
  }
  for (const node of texts) {
    const block = node.parentElement.closest("svg, td, th, li, p, h1, h2, h3, caption, body");
    const box = block.getBoundingClientRect(), range = document.createRange();
    range.selectNodeContents(node);
    for (const line of range.getClientRects()) {
      if (line.right > box.right + slack || line.left < box.left - slack) out.push(`outside of its box: ${called(node.parentElement)}`);
    }
  }

  // Labels of one plot do not cover each other.
  for (const plot of document.querySelectorAll("svg[role=img]")) {
    const labels = [...plot.querySelectorAll("text")];
    for (let i = 1; i < labels.length; i++) {
      if (labels[i].getBoundingClientRect().left < labels[i - 1].getBoundingClientRect().right) {
        out.push(`covers another label: ${called(labels[i])}`);
      }
    }
  }

  // Text differs from what is behind it.
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = channels(color).map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor, alpha = channels(color)[3] ?? 1;
      if (alpha > 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  for (const node of texts) {
    const e = node.parentElement, style = getComputedStyle(e);
    const own = e.closest("svg") ? style.fill : style.color, back = e.closest("svg") ? style.stroke : behind(e);
    const [dark, bright] = [light(own), light(back)].sort((a, b) => a - b);
    if ((bright + 0.05) / (dark + 0.05) < 4.5) out.push(`too little contrast: ${called(e)}, ${own} on ${back}`);
  }
  return [...new Set(out)];
})()
