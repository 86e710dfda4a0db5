/** Elements of a picture's block diagram: the tracks of its timeline, as parts of hosts and devices. */
import { type DiagramLayout, type DiagramParts, layoutOf } from '../../explain/diagram/index.ts';
import type { MachinePicture } from '../protocol.ts';

/** Below this width in pixels, the diagram runs down the page. */
const acrossPx = 1100;

export const hasWidthAcross = (): boolean => document.documentElement.clientWidth >= acrossPx;

/**
 * Omits cores that do nothing in the picture.
 * @param isAcross side by side; else one below the other
 */
export function layoutOfPicture({ tracks, records }: MachinePicture, isAcross: boolean): DiagramLayout {
  const used = tracks.filter(
    ({ group }, track) => group !== 'cores' || records.some((record) => record.track === track),
  );
  const partsOf = (process: string): DiagramParts => {
    const ofGroup = (name: string): string[] =>
      used.filter((track) => track.process === process && track.group === name).map((track) => track.name);
    return {
      process,
      blocks: ofGroup(process.startsWith('host') ? 'cores' : 'blocks'),
      caches: ofGroup('caches'),
    };
  };
  return layoutOf([...new Set(used.map(({ process }) => process))].map(partsOf), isAcross);
}

/** The same diagram without the far host and device, for a machine whose port has a loopback plug. */
export function withoutFarSide(layout: DiagramLayout): DiagramLayout {
  const isNear = ({ process }: { readonly process: string }): boolean => process.endsWith('0');
  const zones = layout.zones.filter(isNear);
  const far = layout.zones.filter((zone) => !isNear(zone));
  const width = Math.min(layout.width, ...far.filter(({ x }) => x > zones[0]!.x).map(({ x }) => x));
  const isAcross = width < layout.width;
  const height = isAcross ? layout.height : Math.min(layout.height, ...far.map(({ y }) => y));
  const isWithin = ({ x, y }: { readonly x: number; readonly y: number }): boolean => x < width && y < height;
  return {
    ...{ width, height, zones },
    cells: layout.cells.filter(isNear),
    lanes: layout.lanes.filter(isNear),
    arrows: layout.arrows.filter(({ points }) => points.every(([x, y]) => isWithin({ x, y }))),
    titles: layout.titles.filter(isWithin),
  };
}
