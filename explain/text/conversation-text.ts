/** Conversations of a capture for people: a heading and a line for each packet. */
import type { Conversation, Utterance } from '../../analyser/capture/index.ts';

const PS_PER_NS = 1000n;
const NS_PER_US = 1000;

/** @param isTroubleOnly leaves out lines of packets without errors */
export function conversationText(conversations: readonly Conversation[], isTroubleOnly: boolean): string {
  let origin: bigint | undefined;
  for (const { beganPs } of conversations) if (origin === undefined || beganPs < origin) origin = beganPs;
  const texts = conversations.map((each) => oneText(each, origin ?? 0n, isTroubleOnly));
  return texts.length === 0 ? 'No packet of InfiniBand, RoCE or iWARP.' : texts.join('\n\n');
}

function oneText(
  { service, first, second, utterances, unkept, counts }: Conversation,
  originPs: bigint,
  isTroubleOnly: boolean,
): string {
  const summary = Object.entries(counts)
    .map(([what, count]) => `${count} ${what}`)
    .join(', ');
  const lines = utterances
    .filter(({ isTrouble }) => isTrouble || !isTroubleOnly)
    .map((utterance) => lineOf(utterance, originPs));
  const more = unkept === 0 ? [] : [`       … ${unkept} more lines: --lines shows more`];
  return [
    `${service}: ${first} and ${second}${summary === '' ? '' : `: ${summary}`}`,
    ...lines,
    ...more,
  ].join('\n');
}

function lineOf({ number, timePs, isFromFirst, words, isTrouble }: Utterance, originPs: bigint): string {
  const time = (Number((timePs - originPs) / PS_PER_NS) / NS_PER_US).toFixed(3);
  return `${String(number).padStart(6)} ${time.padStart(14)} us ${isFromFirst ? ' ──▶' : '◀── '} ${isTrouble ? '! ' : '  '}${words}`;
}
