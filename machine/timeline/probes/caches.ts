/**
 * Look-ups of the on-chip caches by their users: a hit, or a miss and its wait. A waiting user repeats its look-up,
 * which counts once, as a miss.
 */
import { ADDRESS_TOP_UNIT } from '../../../base/index.ts';
import {
  type ContextCache,
  portNameOf,
  type TranslationPort,
  type Translator,
} from '../../../hw/hca/index.ts';
import { around } from '../around.ts';
import type { Stream } from '../stream.ts';

const NOT_WAITING = -1;
/** Answers of a translation (hw/hca/memory/translation.ts). */
const TRANSLATED = 0;
const PENDING = 1;

/** @param numberOf returns the number of the object in a table slot */
export function watchContexts(
  stream: Stream,
  name: string,
  cache: ContextCache,
  users: readonly string[],
  numberOf: (slot: number) => number,
): void {
  const track = stream.track('caches', name, { names: users });
  cache.users.forEach((port, user) => {
    const awaited = new Set<number>();
    around(port, 'access', (access) => (slot, dirties, isFetched) => {
      const isHit = access(slot, dirties, isFetched);
      const atPs = stream.lp.nowPs;
      if (!awaited.has(slot))
        stream.instant(isHit ? 'cacheHit' : 'cacheMiss', track, atPs, user, numberOf(slot));
      if (isHit) awaited.delete(slot);
      else awaited.add(slot);
      return isHit;
    });
  });
}

/** The translations that a user of the translator waits for. */
class Awaited {
  key = NOT_WAITING;
  line = NOT_WAITING;
}

export function watchTranslations(stream: Stream, translator: Translator): void {
  const users = translator.ports.map(({ number }) => portNameOf(number));
  const mpt = stream.track('caches', 'MPT', { names: users });
  const mtt = stream.track('caches', 'MTT', { names: users });
  const awaited = translator.ports.map(() => new Awaited());
  let hasAskedMtt = false;
  around(
    translator,
    'translateBuffer',
    (translateBuffer) => (user, mttOffset, pageBytes, byte, lengthBytes) => {
      const answer = translateBuffer(user, mttOffset, pageBytes, byte, lengthBytes);
      hasAskedMtt = true;
      const entry = mttOffset + Math.floor(byte / pageBytes) * 8;
      noteAccess(stream, mtt, user, entry, answer, awaited[user]!, 'line');
      return answer;
    },
  );
  translator.ports.forEach((port, user) => {
    for (const name of ['translate', 'check'] as const)
      around(port, name, (translate) => (key, pd, address, addressTop, lengthBytes, rights, pair) => {
        const { mptMisses } = port;
        const isAwaited = awaited[user]!.key === key;
        hasAskedMtt = false;
        const answer = translate(key, pd, address, addressTop, lengthBytes, rights, pair);
        const isMptMiss = answer === PENDING && (port.mptMisses > mptMisses || (isAwaited && !hasAskedMtt));
        noteAccess(stream, mpt, user, key, isMptMiss ? PENDING : TRANSLATED, awaited[user]!, 'key');
        if (answer === TRANSLATED && !hasAskedMtt && port.mttLine >= 0)
          stream.instant('cacheHit', mtt, stream.lp.nowPs, user, entryOf(port, address, addressTop));
        return answer;
      });
  });
}

function noteAccess(
  stream: Stream,
  track: number,
  user: number,
  entry: number,
  answer: number,
  awaited: Awaited,
  what: keyof Awaited,
): void {
  const isMiss = answer === PENDING;
  const isKnown = awaited[what] === entry;
  awaited[what] = isMiss ? entry : NOT_WAITING;
  if (isKnown) return;
  stream.instant(isMiss ? 'cacheMiss' : 'cacheHit', track, stream.lp.nowPs, user, entry);
}

/** Returns the entry; for a translation that repeats the last one, only the page is known. */
const entryOf = ({ firstByte }: TranslationPort, address: number, top: number): number =>
  Math.min(firstByte, address) + top * ADDRESS_TOP_UNIT;
