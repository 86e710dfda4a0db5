/**
 * Judges events: each completion for which an armed CQ waits raises one (IBTA 11.4.2.2), a send queue reports when it
 * is drained and is then drained (10.3.1), the limit event of an SRQ occurs at most once for each time that it was
 * armed (10.2.9.4.2). Interrupts may be late, and in broken stories may be lost.
 */
import type { Played } from '../run-story.ts';

export function judgeEvents({ story, seen }: Played): string[] {
  if (story.climate === 'broken') return [];
  return seen.flatMap((observations, program) => {
    if (observations === null) return [];
    const { missing, surprises, events, limitsArmed } = observations;
    const limits = events.filter((name) => name === 'IBV_EVENT_SRQ_LIMIT_REACHED').length;
    const all = [
      ...missing.map((what) => `did not get ${what}`),
      ...surprises.map((what) => `found: ${what}`),
    ];
    if (limits > limitsArmed)
      all.push(`got SRQ limit events ${limits} times, and had armed limits ${limitsArmed} times`);
    return all.map((what) => `program ${program} ${what}`);
  });
}
