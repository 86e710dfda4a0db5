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
