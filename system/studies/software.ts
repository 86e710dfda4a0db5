/** Studies of what programs choose: sleeping or polling, one side or two. */
import { percentText, type Study, type StudyFigures, timesText } from './study.ts';

const rate = 'messagesPerSecond';
const calls = 16;

export const moderation: Study = {
  name: 'moderation',
  question: 'What does moderation of interrupts save, and what latency does it cost?',
  spec: {
    workload: `send-bw,echo,events,size=64,inline=64,qps=1,txDepth=${calls},cqMod=1,iters=400,warmup=50`,
    vary: { moderation: '1:1,2:10,4:20,8:40,16:80' },
  },
  reduced: { moderation: '1:1,8:40' },
  plots: [{ x: 'interrupts.0', y: [rate], by: 'moderation' }],
  answer(figures) {
    const values = figures.valuesOf('moderation').map(String);
    const perMessage = (value: string): number =>
      figures.at('interrupts.0', { moderation: value }) / figures.messagesAt({ moderation: value });
    const latencyUs = (value: string): number => (calls / figures.at(rate, { moderation: value })) * 1e6;
    const fixed = (value: number): string => String(Number(value.toPrecision(3)));
    const rising = values.toSorted((left, right) => perMessage(right) - perMessage(left));
    const [most, least] = [rising[0]!, rising.at(-1)!];
    const fastest = values.toSorted((left, right) => latencyUs(left) - latencyUs(right))[0]!;
    return [
      `With ${calls} calls in flight, moderation ${most} (completions:microseconds) interrupts the client ${fixed(perMessage(most))} times a call, ${least} ${fixed(perMessage(least))} times.`,
      `A call takes ${fixed(latencyUs(most))} µs with ${most}, ${fixed(latencyUs(least))} µs with ${least}, whose interrupts are ${percentText(perMessage(least) / perMessage(most))} of those.`,
      `The shortest time of a call, ${fixed(latencyUs(fastest))} µs, is that of ${fastest}.`,
    ];
  },
};

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

/** Cycles of the server's program for each message, polling among them. */
function serverCycles(figures: StudyFigures, place: Readonly<Record<string, number | string>>): number {
  const row = figures.rows.find(({ axes }) =>
    Object.entries(place).every(([axis, value]) => axes[axis] === value),
  );
  const cycles = Object.entries(row?.figures ?? {})
    .filter(([name]) => name.startsWith('cores.1.cycles.'))
    .reduce((sum, [, value]) => sum + Number(value), 0);
  return Math.round(cycles / figures.messagesAt(place));
}
