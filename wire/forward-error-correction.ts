/**
 * Forward error correction of a link: the time by which it delays whatever crosses the link.
 *
 *     sender ─▶ parity is appended as it goes ═══▶ a whole word of the code arrives ─▶ decoded ─▶ receiver
 *
 * A receiver releases nothing of a word before all of it has arrived, since any bit of it may be wrong. So each
 * crossing takes the time of a word at the rate of all lanes together, then the decoding. The position of a packet
 * within its words, which adds jitter (Sella, Moore and Zilberman 2018), is left out. The rates of HDR and NDR already
 * contain the parity; on Ethernet transcoding makes room for it.
 *
 * Sources: IEEE 802.3-2018, clauses 74 (fire-code), 91 and 108 (rs-528, rs-544); 25 Gigabit Ethernet Consortium
 * (rs-272).
 */
import type { Picoseconds } from '../base/index.ts';
import type { EthernetConfig } from './ethernet-parameters.ts';

export const fecCodes = ['none', 'fire-code', 'rs-528', 'rs-544', 'rs-272'] as const;
export type FecCode = (typeof fecCodes)[number];

export const FEC_SOURCE =
  'IEEE 802.3-2018, clauses 74, 91 and 108; IBTA vol 2: HDR; wire/forward-error-correction.ts';

/** Bits of a word, and symbols that can be corrected in it: 0 for the code that corrects a burst of bits. */
const codes: Readonly<Record<Exclude<FecCode, 'none'>, { readonly bits: number; readonly symbols: number }>> =
  {
    'fire-code': { bits: 2112, symbols: 0 },
    'rs-528': { bits: 528 * 10, symbols: 7 },
    'rs-544': { bits: 544 * 10, symbols: 15 },
    'rs-272': { bits: 272 * 10, symbols: 7 },
  };

/**
 * Estimate: a decoder takes 2t + 1 steps for t symbols, and six more to code and decode, of 1 ns each, as contributions
 * to IEEE P802.3dj assume of a core at 1 GHz. With the word that is 72 ns at 100 Gb/s and 226 ns at 25 Gb/s for rs-528.
 */
const STEP_PS = 1000;
const CODING_STEPS = 6;
const PS_KILOBITS_PER_BIT = 1_000_000_000;

/** Delay of one crossing of a link, in picoseconds. @param kilobitsPerSecond signalling rate of all lanes together */
export function fecLatencyPs(code: FecCode, kilobitsPerSecond: number): Picoseconds {
  if (code === 'none') return 0;
  const { bits, symbols } = codes[code];
  const wordPs = Math.round((bits * PS_KILOBITS_PER_BIT) / kilobitsPerSecond);
  return symbols === 0 ? wordPs : wordPs + (2 * symbols + 1 + CODING_STEPS) * STEP_PS;
}

const KILOBITS_PER_GIGABIT = 1_000_000;

/** The same of Ethernet, which signals 66 bits for 64; with rs-544 and rs-272 34 for 33 of those. */
export function ethernetFecLatencyPs({
  fec,
  gigabitsPerSecond,
}: Pick<EthernetConfig, 'fec' | 'gigabitsPerSecond'>): Picoseconds {
  const coded = (gigabitsPerSecond * KILOBITS_PER_GIGABIT * 66) / 64;
  return fecLatencyPs(fec, fec === 'rs-544' || fec === 'rs-272' ? (coded * 34) / 33 : coded);
}
