/**
 * Judges that nothing is held at the end: when all programs have ended the hardware has no work in flight, and when the
 * drivers have left every block holds the same as when the machine was built. The judge of the ending checks what
 * software still holds.
 */
import type { Held } from '../../machine/index.ts';
import type { Played } from '../run-story.ts';

/** Objects that a loaded driver keeps: its own queues, and pages of ICM. */
const ofDrivers = new Set([
  'queuePairs',
  'completionQueues',
  'sharedReceiveQueues',
  'eventQueues',
  'icmPages',
  'receiveWqeLines',
  'sendWqeLines',
  'iommuPages',
]);

export function judgeHeld({ story, held }: Played): string[] {
  if (story.climate === 'broken') return [];
  return [
    ...more(held.fresh, held.ended, 'when all programs had ended', (name) => !ofDrivers.has(name)),
    ...more(held.fresh, held.removed, 'when the drivers were gone', () => true),
  ];
}

function more(
  fresh: readonly Held[] | undefined,
  later: readonly Held[] | undefined,
  when: string,
  isJudged: (name: string) => boolean,
): string[] {
  return (later ?? []).flatMap((held, node) =>
    Object.entries(held).flatMap(([name, count]) => {
      const before = fresh?.[node]?.[name] ?? 0;
      return count === before || !isJudged(name)
        ? []
        : [`node ${node} held ${count} ${name} ${when}, and ${before} when it was built`];
    }),
  );
}
