/** Formats numbers for people: times in a suitable unit, bytes, shares. */

/** Picoseconds in ps, ns, µs, ms or s, with four significant digits. */
export function timeText(ps: number): string {
  const units = [
    ['s', 1e12],
    ['ms', 1e9],
    ['µs', 1e6],
    ['ns', 1e3],
  ] as const;
  for (const [unit, size] of units) if (Math.abs(ps) >= size) return `${significant(ps / size)} ${unit}`;
  return `${ps} ps`;
}

/** Bytes, with decimals only if they matter. */
export function bytesText(bytes: number): string {
  const units = [
    ['GiB', 1024 ** 3],
    ['MiB', 1024 ** 2],
    ['KiB', 1024],
  ] as const;
  for (const [unit, size] of units) if (bytes >= size) return `${significant(bytes / size)} ${unit}`;
  return `${bytes} B`;
}

/** Bytes per second in B/s, kB/s, MB/s or GB/s. */
export function rateText(bytesPerSecond: number): string {
  if (bytesPerSecond >= 1e9) return `${(bytesPerSecond / 1e9).toFixed(2)} GB/s`;
  if (bytesPerSecond >= 1e6) return `${(bytesPerSecond / 1e6).toFixed(bytesPerSecond >= 1e7 ? 0 : 1)} MB/s`;
  return bytesPerSecond >= 1e3
    ? `${(bytesPerSecond / 1e3).toFixed(bytesPerSecond >= 1e4 ? 0 : 1)} kB/s`
    : `${Number(bytesPerSecond.toPrecision(3))} B/s`;
}

/** An integer with thousands separators. */
export const countText = (count: number): string =>
  String(Math.round(count)).replace(/\B(?=(\d{3})+(?!\d))/g, ',');

/** A count and its noun. @param many the noun in the plural */
export const countedText = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`;

/** `part` of `whole` in per cent. */
export const shareText = (part: number, whole: number): string =>
  whole === 0 ? '-' : `${((part / whole) * 100).toFixed(1)} %`;

function significant(value: number): string {
  const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value) || 1)));
  return value.toFixed(Math.min(3, digits));
}
