/** A played story with an altered capture of the cable, for specs of judges that read it. */
import { readCapture, writeCapture } from '../../../analyser/capture/index.ts';
import type { Played } from '../../run-story.ts';

export type Frame = ReturnType<typeof readCapture>['frames'][number];

/**
 * @param change returns the changed frames; it must not alter those that it receives
 */
export function withFrames(played: Played, change: (frames: Frame[]) => Frame[]): Played {
  const { interfaces, frames } = readCapture(played.capture!);
  const kept = interfaces.map(({ linkType, name, droppedPackets }) => ({
    linkType,
    name,
    description: name,
    bitsPerSecond: 1n,
    droppedPackets,
  }));
  const packets = change([...frames]).map(({ interface: at, timePs, direction, bytes, comment }) => ({
    interface: at,
    timePs,
    direction: direction === 'outbound' ? ('outbound' as const) : ('inbound' as const),
    bytes,
    comment,
  }));
  return { ...played, capture: writeCapture('', kept, packets) };
}
