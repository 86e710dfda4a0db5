/**
 * The columns of a user's own row, each with the texts that it accepts: a misspelt text would silently select
 * another card or test. A row that names a source and a place in it is a published one, whose texts are not checked.
 */
import type { Measurement } from '../measurements.ts';

interface Words {
  readonly text: RegExp;
  readonly accepted: string;
}

const bandwidthTest = /_bw/;
const words = {
  nic: {
    text: /^ConnectX-(?:2|3|3 Pro|5)$/,
    accepted: 'ConnectX-2, ConnectX-3, ConnectX-3 Pro or ConnectX-5',
  },
  link: {
    text: /^(?:IB (?:QDR|FDR|EDR)|RoCE (?:10|40|100))(?:, MTU (?:256|512|1024|2048|4096))?(?:, switch)?$/,
    accepted:
      'IB QDR, IB FDR, IB EDR, RoCE 10, RoCE 40 or RoCE 100, then ", MTU 2048" and ", switch" if they hold',
  },
  workload: {
    text: /^ib_(?:(?:write|read|send|atomic)_(?:lat|bw)|send_(?:lat|bw) UD)$/,
    accepted: 'ib_write_lat, ib_write_bw, the same of read, send and atomic, ib_send_lat UD or ib_send_bw UD',
  },
  params: {
    text: /^(?:size=\d+(?: ?(?:B|KiB|MiB))?)?(?:(?:^|; )QPs=\d+)?$/,
    accepted: 'size=64, size=64 KiB, size=64; QPs=4',
  },
  metric: {
    text: /^(?:latency (?:t_typical|t_min|99th percentile)|message rate|bandwidth average)$/,
    accepted: 'latency t_typical, latency t_min, latency 99th percentile, message rate or bandwidth average',
  },
  unit: { text: /^(?:us|Mops|Gb\/s|MiB\/s)$/, accepted: 'us, Mops, Gb/s or MiB/s' },
} as const satisfies Partial<Record<keyof Measurement, Words>>;

/** Ports of each card that have a profile. */
const portsOf: Readonly<Record<string, RegExp>> = {
  'ConnectX-2': /^IB QDR|^RoCE 10\b/,
  'ConnectX-3': /^IB (?:QDR|FDR)/,
  'ConnectX-3 Pro': /^IB (?:QDR|FDR)|^RoCE 40/,
  'ConnectX-5': /^IB EDR|^RoCE 100/,
};

export const isPublished = ({ source, where }: Measurement): boolean => source !== '' && where !== '';

/** Why a user's row cannot run; undefined if it can. */
export function refusalOf(row: Measurement): string | undefined {
  for (const [column, { text, accepted }] of Object.entries(words))
    if (!text.test(row[column as keyof typeof words]))
      return `${column} is "${row[column as keyof typeof words]}", expected ${accepted}`;
  const { nic, link, workload, params, metric, value } = row;
  if (!portsOf[nic]!.test(link)) return `no profile is of a ${nic} with ${link}`;
  if (bandwidthTest.test(workload) === metric.startsWith('latency')) return `${workload} has no ${metric}`;
  if (/atomic/.test(workload) === params.includes('size='))
    return `params of ${workload} ${params.includes('size=') ? 'have no size: 8 bytes' : 'lack size'}`;
  if (value === 0) return 'its value is 0';
  return undefined;
}
