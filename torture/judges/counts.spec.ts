/** Falsified counts of the report and times of the programs of a successful story. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { NodeReport } from '../../machine/report/schema.ts';
import { IBV_WC_RETRY_EXC_ERR } from '../../userlib/index.ts';
import type { Observations } from '../observations.ts';
import { type Played, playStory } from '../run-story.ts';
import { exampleStory } from '../testing/example-story.ts';
import { judgeCounts } from './counts.ts';
import { judgePhysics } from './physics.ts';

let played: Played;

beforeAll(async () => {
  played = await playStory(
    { ...exampleStory(121), again: undefined },
    { partition: 'single', shuffleSeed: undefined },
  );
}, 60_000);

const withNode = (change: (node: NodeReport) => NodeReport): Played => ({
  ...played,
  report: { ...played.report, nodes: played.report.nodes.map(change) },
});

const withSeen = (change: (seen: Observations) => Observations): Played => ({
  ...played,
  seen: played.seen.map((seen) => (seen === null ? null : change(seen))),
});

const withMisses = (cache: string, misses: number): Played =>
  withNode((node) => {
    const { caches } = node.hca;
    return { ...node, hca: { ...node.hca, caches: { ...caches, [cache]: { ...caches[cache]!, misses } } } };
  });

const withCqes = (add: number): Played =>
  withNode((node) => {
    const { toHost } = node.pcie;
    const cqe = { ...toHost.classes['cqe']!, tlps: toHost.classes['cqe']!.tlps + add };
    return { ...node, pcie: { ...node.pcie, toHost: { ...toHost, classes: { ...toHost.classes, cqe } } } };
  });

describe('the judge of counts', () => {
  it('finds nothing in a story that went well', () => expect(judgeCounts(played)).toEqual([]));

  it('finds CQEs that no program took, and completions that no CQE brought', () => {
    expect(judgeCounts(withCqes(1000)).join()).toMatch(/CQEs written/);
    expect(judgeCounts(withCqes(-1)).join()).toMatch(/CQEs written/);
  });

  it('finds requests that were started otherwise than posted', () => {
    expect(judgeCounts(withMisses('wqe', 10_000)).join()).toMatch(/took up/);
  });

  it('finds a cache that never missed', () => {
    expect(judgeCounts(withMisses('mpt', 0)).join()).toMatch(/0 misses of MPT entries/);
  });

  it('finds a memory bus that carried less than the requests did', () => {
    const memoryBus = { deviceReads: 1, deviceWrites: 1 };
    const told = withNode((node) => ({ ...node, memoryBus: { ...node.memoryBus, ...memoryBus } }));
    expect(judgeCounts(told).join()).toMatch(/device read 1 bytes.*device wrote 1 bytes/);
  });
});

describe('the judge of physics', () => {
  it('finds nothing in a story that went well', () => expect(judgePhysics(played)).toEqual([]));

  it('finds requests that ended before their bytes can have arrived, and more than a cable carries', () => {
    const first = Math.min(...played.seen.flatMap((seen) => seen!.posts.map(({ fromPs }) => fromPs)));
    const told = withSeen((seen) => ({
      ...seen,
      posts: seen.posts.map((post) => ({ ...post, fromPs: first })),
      completions: seen.completions.map((end) => ({ ...end, toPs: first + 20_000 })),
    }));
    expect(judgePhysics(told).join()).toMatch(/their links need/);
    expect(judgePhysics(told).join()).toMatch(/more than the cable carries/);
    const wire = played.report.wire.map((direction) => ({ ...direction, linkBytes: 1e12 }));
    expect(judgePhysics({ ...played, report: { ...played.report, wire } }).join()).toMatch(/on the cable in/);
  });

  it('finds a requester that gives up long after its time-outs', () => {
    const told = withSeen((seen) => {
      const { id } = seen.completions.find((end) => seen.posts.some((post) => post.id === end.id))!;
      const completions = seen.completions.map((end) =>
        end.id === id ? { ...end, status: IBV_WC_RETRY_EXC_ERR, toPs: 1e18 } : end,
      );
      return { ...seen, completions };
    });
    expect(judgePhysics(told).join()).toMatch(/gave up/);
  });
});
