/** Studies of choices of programs: sleeping or polling, one-sided or two-sided. */
import { countText } from '../../explain/text/format.ts';
import { percentText, type Study, type StudyFigures, timesText } from './study.ts';

const rate = 'messagesPerSecond';
const interrupts = 'load.interruptsPerSecond.0';

export const moderation: Study = {
  name: 'moderation',
  question: 'What does moderation of interrupts save, and what latency does it cost?',
  spec: {
    workload: 'send-bw,echo,events,size=64,inline=64,qps=1,cqMod=64,rate=10000,iters=1000,warmup=100',
    vary: { rate: '10k,100k,1M', moderation: '1:1,4:8,16:32,64:128' },
  },
  reduced: { rate: '100k', moderation: '1:1,64:128' },
  plots: [
    ...['typicalPs', 'p90Ps', 'p99Ps', 'p999Ps', 'load.busyCores.0'].map((figure) => ({
      ...{ x: interrupts, y: [figure], by: 'rate' },
    })),
  ],
  answer(figures) {
    const rates = figures.numbersOf('rate');
    const values = figures.valuesOf('moderation').map(String);
    const most = rates.at(-1)!;
    const [weak, strong] = [values[0]!, values.at(-1)!];
    const at = (count: number, value: string) => ({ rate: count, moderation: value });
    const perSecond = (count: number, value: string): string =>
      countText(Math.round(figures.at(interrupts, at(count, value))));
    const saved = (count: number): number =>
      1 - figures.at(interrupts, at(count, strong)) / figures.at(interrupts, at(count, weak));
    const words = rates.map(
      (count) =>
        `${percentText(saved(count))} at ${countText(count)} calls a second, for ${latenciesText(figures, at(count, strong))} instead of ${latenciesText(figures, at(count, weak))}`,
    );
    const points = values.map(
      (value) =>
        `${value} has ${perSecond(most, value)} interrupts and 99 % of the calls within ${figures.text('p99Ps', at(most, value))}`,
    );
    const busy = (value: string): string => figures.at('load.busyCores.0', at(most, value)).toFixed(2);
    return [
      `Moderation ${strong} instead of ${weak} (completions:microseconds) saves of the client's interrupts ${words.join('; ')} (median and 99th percentile of a call, from its arrival to its answer).`,
      `At ${countText(most)} calls a second ${points.join('; ')}.`,
      `There the client's core is busy ${busy(weak)} of the time with ${weak} and ${busy(strong)} with ${strong}: calls arrive at random, whether or not earlier ones have been answered.`,
    ];
  },
};

/** Median and 99th percentile. */
const latenciesText = (figures: StudyFigures, place: Readonly<Record<string, number | string>>): string =>
  `${figures.text('typicalPs', place)} and ${figures.text('p99Ps', place)}`;

export const sides: Study = {
  name: 'sides',
  question: 'One-sided or two-sided: what do rates and processors say?',
  spec: {
    workload: 'read-bw,qps=4,txDepth=16,iters=200,warmup=50',
    vary: { size: '32,256,1024,4096' },
    points: [
      { test: 'read-bw', echo: false },
      { test: 'send-bw', echo: true },
    ],
  },
  reduced: { size: '32,4096' },
  plots: [{ x: 'size', y: [rate], by: 'test' }],
  answer(figures) {
    const sizes = figures.numbersOf('size');
    const [small, large] = [sizes[0]!, sizes.at(-1)!];
    const at = (test: string, size: number) => ({ test, size });
    const gain = (size: number): number =>
      figures.at(rate, at('read-bw', size)) / figures.at(rate, at('send-bw', size));
    return [
      `Values of ${small} bytes are fetched by READ at ${figures.text(rate, at('read-bw', small))}, by a call of SENDs at ${figures.text(rate, at('send-bw', small))}: ${timesText(gain(small))} as many.`,
      `The server's processor spends ${serverCycles(figures, at('read-bw', small))} cycles a value by READ and ${serverCycles(figures, at('send-bw', small))} by calls.`,
      `At ${large} bytes READ has ${timesText(gain(large))} the rate of calls.`,
    ];
  },
};

/** Cycles of the server's program for each message, including polling. */
function serverCycles(figures: StudyFigures, place: Readonly<Record<string, number | string>>): number {
  const row = figures.rows.find(({ axes }) =>
    Object.entries(place).every(([axis, value]) => axes[axis] === value),
  );
  const cycles = Object.entries(row?.figures ?? {})
    .filter(([name]) => name.startsWith('cores.1.cycles.'))
    .reduce((sum, [, value]) => sum + Number(value), 0);
  return Math.round(cycles / figures.messagesAt(place));
}
