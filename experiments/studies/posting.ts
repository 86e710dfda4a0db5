/** Studies of how requests are handed over: in the WQE or by address, one by one or in lists. */
import { bindsText, nsText, percentText, type Study, timesText } from './study.ts';

const typical = 'typicalPs';

export const inline: Study = {
  name: 'inline',
  question: 'What do inlined payload and BlueFlame save?',
  spec: {
    workload: 'write-lat,iters=100',
    vary: { size: '16,64,128,256,512', inline: '0,512', blueflame: 'on,off' },
  },
  reduced: { size: '16,64', inline: '0,512', blueflame: 'on,off' },
  plots: [{ x: 'size', y: [typical], by: 'inline' }],
  answer(figures) {
    const timeAt = (size: number, inlined: number, blueflame: string): number =>
      figures.at(typical, { size, inline: inlined, blueflame });
    const sizes = figures.numbersOf('size');
    const small = sizes[0]!;
    const large = sizes.at(-1)!;
    const saved = (size: number): number => timeAt(size, 0, 'off') - timeAt(size, 512, 'on');
    const byInline = timeAt(small, 0, 'off') - timeAt(small, 512, 'off');
    const most = sizes.toSorted((left, right) => saved(right) - saved(left))[0]!;
    return [
      `A WRITE of ${small} bytes takes ${nsText(timeAt(small, 0, 'off'))} one way with doorbell and payload fetched, ${nsText(timeAt(small, 512, 'on'))} inlined by BlueFlame: ${percentText(saved(small) / timeAt(small, 0, 'off'))} less.`,
      `Of these ${nsText(saved(small))} the fetch of the payload is ${nsText(byInline)}, the fetch of the WQE ${nsText(saved(small) - byInline)}.`,
      `Most is saved at ${most} bytes, ${nsText(saved(most))}; at ${large} bytes it is ${nsText(saved(large))}.`,
    ];
  },
};

const rate = 'messagesPerSecond';

export const postLists: Study = {
  name: 'post-lists',
  question: 'What do lists of requests with one doorbell bring?',
  spec: {
    workload: 'write-bw,size=64,inline=64,iters=512,qps=8',
    vary: { postList: '1..32*2', threads: '1,2' },
  },
  reduced: { postList: '1,8', threads: '1' },
  plots: [{ x: 'postList', y: [rate], by: 'threads' }],
  answer(figures) {
    const lists = figures.numbersOf('postList');
    const [one, longest] = [lists[0]!, lists.at(-1)!];
    const rateAt = (postList: number): number => figures.at(rate, { postList, threads: 1 });
    const best = lists.toSorted((left, right) => rateAt(right) - rateAt(left))[0]!;
    const enough = lists.find((list) => rateAt(list) >= 0.95 * rateAt(best))!;
    return [
      `One core posts ${figures.text(rate, { postList: one, threads: 1 })} of 64 bytes one by one, ${figures.text(rate, { postList: longest, threads: 1 })} in lists of ${longest}: ${timesText(rateAt(longest) / rateAt(one))} as many.`,
      `Lists of ${enough} have 95 % of the best rate, which is that of ${best}.`,
      `One by one, ${bindsText(figures, { postList: one, threads: 1 })} binds; in lists of ${longest}, ${bindsText(figures, { postList: longest, threads: 1 })}.`,
    ];
  },
};
