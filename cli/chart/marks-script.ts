/**
 * Part of the script of a page of charts: marks. Each is a dashed line through the chart, with its words in a strip
 * above it. On a page of any width, the words cover neither each other nor the drawing. A click on the words of a mark
 * with reports opens these.
 */
export const marksScript = `
const marksOf = (marks) => {
  const strip = document.createElement('div');
  strip.className = 'marks';
  const labels = marks.map(({ x, text, reports }) => {
    const words = document.createElement(reports.length === 0 ? 'span' : 'a');
    words.textContent = text;
    if (reports.length > 0) {
      words.className = 'opens';
      words.href = '#report-' + reports[0];
      words.dataset.reports = reports.join(' ');
      words.title = reports.length === 1 ? 'opens the report of this point' : 'opens the reports of these ' + reports.length + ' points';
    }
    const stem = document.createElement('i');
    strip.append(stem, words);
    return { value: x, words, stem };
  });
  const gap = 8;

  const inside = (left, room, width) => Math.max(0, Math.min(width - room, left));
  const isOver = (x, { left, room }) => x > left - 1 && x < left + room + 1;
  const overlap = (one, other) => one.left < other.left + other.room + gap && other.left < one.left + one.room + gap;
  // Puts each text into the lowest row where it covers no other, and counts the stems that cross texts.
  const stacked = (boxes) => {
    const placed = [];
    let crossings = 0;
    for (const box of boxes) {
      const rows = [...placed.keys(), placed.length].filter((row) => !placed.some((other) => other.row === row && overlap(box, other)));
      const crossingsAt = (row) =>
        placed.filter((other) => (other.row < row ? isOver(box.x, other) : other.row > row && isOver(other.x, box))).length;
      const row = rows.reduce((best, each) => (crossingsAt(each) < crossingsAt(best) ? each : best));
      crossings += crossingsAt(row);
      placed.push({ ...box, row });
    }
    return { placed, worth: crossings * 100 + Math.max(0, ...placed.map(({ row }) => row)) };
  };
  // Labels left of a split have their text left of the stem, and the nearer to the split, the higher; labels right of
  // it mirror this. Tries each split and takes the best one.
  const place = (shown, width) => {
    const rising = shown.map((label) => ({ ...label, room: label.words.offsetWidth })).toSorted((one, other) => one.x - other.x);
    const tries = [...rising.keys(), rising.length].map((split) =>
      stacked([
        ...rising.slice(0, split).map((label) => ({ ...label, left: inside(label.x - label.room, label.room, width) })),
        ...rising.slice(split).toReversed().map((label) => ({ ...label, left: inside(label.x, label.room, width) })),
      ]),
    );
    return tries.reduce((best, each) => (each.worth < best.worth ? each : best)).placed;
  };

  const layOut = (plot) => {
    const width = plot.width;
    for (const { words, stem } of labels) words.hidden = stem.hidden = true;
    const shown = labels.flatMap(({ value, words, stem }) => {
      const at = plot.valToPos(value, 'x');
      if (!(at >= -1 && at <= plot.over.clientWidth + 1)) return [];
      words.hidden = stem.hidden = false;
      return [{ words, stem, x: at + plot.over.offsetLeft }];
    });
    const placed = place(shown, width);
    const heights = [];
    for (const { row, words } of placed) heights[row] = Math.max(heights[row] ?? 0, words.offsetHeight);
    const bottomOf = (row) => heights.slice(0, row).reduce((sum, height) => sum + height, 0);
    for (const { row, left, x, words, stem } of placed) {
      Object.assign(words.style, { left: left + 'px', bottom: bottomOf(row) + 'px' });
      Object.assign(stem.style, { left: x + 'px', height: bottomOf(row) + words.offsetHeight + 'px' });
    }
    strip.style.height = bottomOf(heights.length) + 'px';
  };

  const draw = (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = styled('--dim');
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const { value } of labels) {
      const at = plot.valToPos(value, 'x', true);
      if (at < bbox.left - 1 || at > bbox.left + bbox.width + 1) continue;
      ctx.beginPath();
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
    layOut(plot);
  };
  return { strip, draw };
};
`;
