/** Conversations of a capture for people: a heading and a line for each packet. */
import type { Conversation, Utterance } from '../../analyser/capture/index.ts';

const PS_PER_NS = 1000n;
const NS_PER_US = 1000;

/** @param isTroubleOnly leaves out what went as it should */
export function conversationText(conversations: readonly Conversation[], isTroubleOnly: boolean): string {
  const origin = conversations
    .flatMap(({ utterances }) => utterances)
    .reduce<bigint | undefined>(
      (least, { timePs }) => (least === undefined || timePs < least ? timePs : least),
      undefined,
    );
  const texts = conversations.map((each) => oneText(each, origin ?? 0n, isTroubleOnly));
  return texts.length === 0 ? 'No packet of InfiniBand or RoCE.' : texts.join('\n\n');
}

function oneText(
  { service, first, second, utterances, counts }: Conversation,
  originPs: bigint,
  isTroubleOnly: boolean,
): string {
  const summary = Object.entries(counts)
    .map(([what, count]) => `${count} ${what}`)
    .join(', ');
  const lines = utterances
    .filter(({ isTrouble }) => isTrouble || !isTroubleOnly)
    .map((utterance) => lineOf(utterance, originPs));
  return [`${service}: ${first} and ${second}${summary === '' ? '' : `: ${summary}`}`, ...lines].join('\n');
}

function lineOf({ number, timePs, isFromFirst, words, isTrouble }: Utterance, originPs: bigint): string {
  const time = (Number((timePs - originPs) / PS_PER_NS) / NS_PER_US).toFixed(3);
  return `${String(number).padStart(6)} ${time.padStart(14)} us ${isFromFirst ? ' ──▶' : '◀── '} ${isTrouble ? '! ' : '  '}${words}`;
}
