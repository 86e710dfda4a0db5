import { describe, expect, it } from 'vitest';
import { LinkTraining, PhysicalState, TrainingStep } from './link-training.ts';

function training() {
  const log: string[] = [];
  const link = new LinkTraining({
    sendStep: (step) => log.push(`send ${step}`),
    startTimer: () => log.push('start'),
    stopTimer: () => log.push('stop'),
    linkChanged: (isUp) => log.push(isUp ? 'up' : 'down'),
  });
  return { link, log };
}

describe('link training, seen by one end', () => {
  it('IBTA vol 2, 5.6: receives nothing while disabled', () => {
    const { link, log } = training();
    link.stepReceived(TrainingStep.TS1);
    link.stepReceived(TrainingStep.TS2);
    expect(log).toEqual([]);
    expect(link.physicalState).toBe(PhysicalState.DISABLED);
  });

  it('IBTA vol 2, 5.6: answers TS1 by TS2 and waits for the other TS2', () => {
    const { link, log } = training();
    link.setEnabled(true);
    link.stepReceived(TrainingStep.TS1);
    expect(link.physicalState).toBe(PhysicalState.TRAINING);
    link.stepReceived(TrainingStep.TS2);
    link.stepReceived(TrainingStep.TS2);
    link.complete();
    expect(log).toEqual(['send 1', 'send 2', 'start', 'up']);
  });

  it('IBTA vol 2, 5.6: starts over with an end that starts over', () => {
    const { link, log } = training();
    link.setEnabled(true);
    link.stepReceived(TrainingStep.TS2);
    link.complete();
    log.length = 0;
    link.stepReceived(TrainingStep.TS1);
    expect(log).toEqual(['down', 'send 2']);
    expect(link.physicalState).toBe(PhysicalState.TRAINING);
  });

  it('stops its timer when the other end goes away meanwhile', () => {
    const { link, log } = training();
    link.setEnabled(true);
    link.stepReceived(TrainingStep.TS2);
    link.stepReceived(TrainingStep.DOWN);
    expect(log).toEqual(['send 1', 'send 2', 'start', 'stop']);
    expect(link.physicalState).toBe(PhysicalState.POLLING);
  });
});
