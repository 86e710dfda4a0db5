/** perf's figures of recovery, compared with the faults applied to the packets (IBTA vol 1, 9.7.5.1.4, 9.7.5.2.8, 9.7.6.1.3). */
import { describe, expect, it } from 'vitest';
import { parsedFault } from '../../machine/faults/index.ts';
import { parsedWorkload, perfArgsOf } from '../workloads/workload.ts';
import { type Recovery, recoveryLine } from './perf-recovery.ts';
import runPerf from './perf-run.ts';

async function recovered(workload: string, ...faults: string[]): Promise<Recovery | undefined> {
  const args = perfArgsOf(parsedWorkload(workload));
  return (await runPerf({ machine: { faults: faults.map(parsedFault) }, args })).recovery;
}

const nothing: Recovery = {
  retransmittedPackets: 0,
  sequenceNaks: 0,
  rnrNaks: 0,
  errorNaks: 0,
  timeouts: 0,
  missingResponses: 0,
};

describe('recovery', () => {
  it('is omitted if nothing was recovered', async () => {
    expect(await recovered('send-bw,size=4096,iters=50')).toBeUndefined();
  });

  it('IBTA 9.7.5.2: a request lost in a stream causes one NAK for a sequence error, and retransmissions', async () => {
    const recovery = await recovered('send-bw,size=4096,iters=50', 'packet=lost,nth=20,node=0');
    expect(recovery).toEqual({
      ...nothing,
      retransmittedPackets: recovery!.retransmittedPackets,
      sequenceNaks: 1,
    });
    expect(recovery!.retransmittedPackets).toBeGreaterThan(0);
  });

  it('IBTA 9.7.6.1.3: a lone request lost twice causes two timeouts and two retransmissions', async () => {
    const faults = ['packet=lost,nth=5,node=0', 'packet=lost,nth=6,node=0'];
    expect(await recovered('read-lat,size=8,iters=10', ...faults)).toEqual({
      ...nothing,
      retransmittedPackets: 2,
      timeouts: 2,
    });
  });

  it('IBTA 9.7.5.1.1: the next READ response reveals a lost one', async () => {
    const recovery = await recovered('read-bw,size=4096,iters=50', 'packet=lost,nth=20,node=1');
    expect(recovery!.missingResponses).toBe(1);
    expect(recovery!.timeouts).toBe(0);
  });

  it('is one line with the nonzero counts', () => {
    expect(recoveryLine('64 bytes', { ...nothing, rnrNaks: 1, timeouts: 12_000 })).toBe(
      '64 bytes: 1 RNR NAK, 12,000 time-outs.',
    );
  });
});
