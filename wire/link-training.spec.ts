import { describe, expect, it } from 'vitest';
import { LogicalProcess } from '../sim/logical-process.ts';
import { LinkTraining, PhysicalState, TrainingStep } from './link-training.ts';

function training() {
  const log: string[] = [];
  const lp = new LogicalProcess('port');
  const link = new LinkTraining(lp, { trainingUs: 5 });
  link.connect({
    sender: { sendStep: (step) => log.push(`send ${step}`) },
    port: { linkChanged: (isUp) => log.push(`${isUp ? 'up' : 'down'} at ${lp.nowPs}`) },
  });
  return { link, log, finish: () => lp.advance(1e9) };
}

describe('link training, seen by one end', () => {
  it('IBTA vol 2, 5.6: receives nothing while disabled', () => {
    const { link, log } = training();
    link.stepReceived(TrainingStep.TS1);
    link.stepReceived(TrainingStep.TS2);
    expect(log).toEqual([]);
    expect(link.physicalState).toBe(PhysicalState.DISABLED);
  });

  it('IBTA vol 2, 5.6: answers TS1 by TS2 and waits for the peer’s TS2', () => {
    const { link, log, finish } = training();
    link.setEnabled(true);
    link.stepReceived(TrainingStep.TS1);
    expect(link.physicalState).toBe(PhysicalState.TRAINING);
    link.stepReceived(TrainingStep.TS2);
    link.stepReceived(TrainingStep.TS2);
    finish();
    expect(log).toEqual(['send 1', 'send 2', 'up at 5000000']);
  });

  it('IBTA vol 2, 5.6: starts over with a peer that starts over', () => {
    const { link, log, finish } = training();
    link.setEnabled(true);
    link.stepReceived(TrainingStep.TS2);
    finish();
    log.length = 0;
    link.stepReceived(TrainingStep.TS1);
    expect(log).toEqual(['down at 5000000', 'send 2']);
    expect(link.physicalState).toBe(PhysicalState.TRAINING);
  });

  it('IBTA vol 2, 5.6: does not come up if the peer goes down meanwhile', () => {
    const { link, log, finish } = training();
    link.setEnabled(true);
    link.stepReceived(TrainingStep.TS2);
    link.stepReceived(TrainingStep.DOWN);
    finish();
    expect(log).toEqual(['send 1', 'send 2']);
    expect(link.physicalState).toBe(PhysicalState.POLLING);
  });
});
