/**
 * Judges the packets of an InfiniBand cable, as an observer at both ends reads them (analyser/independent): each has
 * headers that agree with each other and right CRCs, except those that a fault damaged, which have at least one wrong
 * CRC. Another judge handles Ethernet frames. Source: IBTA vol 1, chapters 7 to 9.
 */

import { readCapture } from '../../analyser/capture/index.ts';
import { errorsOf, readCaptured } from '../../analyser/independent/index.ts';
import { isOnEthernet } from '../ethernet-cable.ts';
import type { Played } from '../run-story.ts';
import { damagedNote, hasNote } from './ethernet/cable-end.ts';

/** Later findings mostly repeat the first. */
const findingsMax = 3;

export function judgeLinks({ story, capture }: Pick<Played, 'story' | 'capture'>): string[] {
  if (capture === undefined || isOnEthernet(story)) return [];
  const found: string[] = [];
  const { interfaces, frames } = readCapture(capture);
  for (const { interface: node, bytes, comment, direction, timePs } of frames) {
    const packet = readCaptured(interfaces[node]!.linkType, bytes);
    const isDamaged = hasNote(comment, damagedNote);
    const wrong = typeof packet === 'object' ? errorsOf(packet) : [packet ?? 'it is no packet of InfiniBand'];
    if (isDamaged ? wrong.length > 0 : wrong.length === 0) continue;
    const what = isDamaged ? 'nothing is wrong, though a fault damaged it' : wrong.join('; ');
    found.push(`node ${node}, the ${direction} packet of ${timePs} ps: ${what}`);
    if (found.length === findingsMax) break;
  }
  return found;
}
