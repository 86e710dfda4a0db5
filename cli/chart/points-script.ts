/**
 * Part of the script of a page of charts: hovering over a point shows its values, and a click opens its report, if the
 * page has it. Points that coincide are treated as one.
 */
export const pointsScript = `
// Distance in pixels from which dragging selects a range.
const draggedLeast = 5;
const pointsOf = (chart, textOfX, textOfY) => {
  // Distances in pixels: between mouse and point to hover over it, and between two points that count as one.
  const reach = 14;
  const together = 2;
  const namesMost = 4;
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;

  const pointsAt = (plot, left, top) => {
    const [xs, ...columns] = plot.data;
    const [from, to] = [plot.posToIdx(left - reach), plot.posToIdx(left + reach)];
    const near = columns.flatMap((column, line) => {
      if (!plot.series[line + 1].show) return [];
      const points = [];
      for (let at = from; at <= to; at++) {
        if (column[at] == null) continue;
        const [x, y] = [plot.valToPos(xs[at], 'x'), plot.valToPos(column[at], 'y')];
        const distance = Math.hypot(x - left, y - top);
        const report = chart.reports[line]?.[at] ?? undefined;
        if (distance <= reach) points.push({ line, at, x, y, distance, report });
      }
      return points;
    });
    const nearest = near.reduce((least, point) => (least === undefined || point.distance < least.distance ? point : least), undefined);
    return near.filter(({ x, y }) => Math.hypot(x - nearest.x, y - nearest.y) <= together);
  };
  const reportsOf = (points) => [...new Set(points.flatMap(({ report }) => report ?? []))];
  // A report describes the whole point; then a line that others are compared with adds nothing.
  const namesOf = (plot, points) => {
    const named = points.map(({ line, at, report }) => {
      const title = report === undefined ? undefined : document.querySelector('#report-' + report + ' > summary')?.textContent;
      return (title ?? chart.lines[line].label) + (chart.isScattered ? '' : ': ' + textOfY(plot.data[line + 1][at]));
    });
    return [...new Set(named)];
  };

  const show = (plot) => {
    const { left = -1, top = -1 } = plot.cursor;
    const points = left < 0 || top < 0 ? [] : pointsAt(plot, left, top);
    const reports = reportsOf(points);
    plot.over.style.cursor = reports.length > 0 ? 'pointer' : '';
    tip.hidden = points.length === 0;
    if (tip.hidden) return;
    const names = namesOf(plot, points);
    const more = names.length - namesMost;
    const [{ line, at }] = points;
    const lines = [
      chart.xLabel + ' ' + textOfX(plot.data[0][at]),
      ...(chart.isScattered ? [chart.yLabel + ' ' + textOfY(plot.data[line + 1][at])] : []),
      ...names.slice(0, namesMost),
      ...(more > 0 ? ['and ' + more + ' more'] : []),
      ...(reports.length > 0 ? [reports.length === 1 ? 'Click for its report' : 'Click for their reports'] : []),
      ...(reports.length === 0 && chart.reports.length > 0 ? ['Its report is not on this page'] : []),
    ];
    tip.replaceChildren(...lines.map((text) => Object.assign(document.createElement('div'), { textContent: text })));
    const { x, y } = points[0];
    const across = Math.max(0, Math.min(plot.over.clientWidth - tip.offsetWidth, x - tip.offsetWidth / 2));
    const above = y - tip.offsetHeight - 12;
    Object.assign(tip.style, { left: across + 'px', top: (above < 0 ? y + 14 : above) + 'px' });
  };

  const ready = (plot) => {
    plot.over.append(tip);
    let down;
    plot.over.addEventListener('mousedown', (event) => {
      down = event;
    });
    plot.over.addEventListener('click', ({ clientX, clientY }) => {
      if (Math.abs(clientX - down.clientX) >= draggedLeast) return;
      const { left, top } = plot.over.getBoundingClientRect();
      const reports = reportsOf(pointsAt(plot, clientX - left, clientY - top));
      if (reports.length > 0) openReports(reports);
    });
  };
  return { ready, show };
};
`;
