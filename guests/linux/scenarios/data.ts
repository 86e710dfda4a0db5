/**
 * Data moved over every arrangement of adapters: one that talks to itself, two with a cable, and two guests. The first runs
 * every request of stock programs; over cables run those that a cable can affect.
 */
import { countersStep } from './counters.ts';
import {
  bothDirectionsStep,
  briefOperationsStep,
  formsSteps,
  longestStep,
  longSteps,
  mtuStep,
  operationsSteps,
  plainPingPongSteps,
  queuePairsStep,
  type Route,
  sharedReceiveSteps,
  sizesStep,
  unreliableStep,
} from './data-tests.ts';
import type { Scenario } from './scenario.ts';
import { embeddedManagerSteps, ownManagerStep } from './subnet-manager.ts';

const loopbackRoute: Route = {
  serverDevice: 'mlx4_0',
  clientDevice: 'mlx4_0',
  host: 'localhost',
  run: (stage, test) => stage.pair(test),
};

const cableRoute: Route = { ...loopbackRoute, clientDevice: 'mlx4_1' };

const guestsRoute: Route = {
  serverDevice: 'mlx4_0',
  clientDevice: 'mlx4_0',
  host: 'guest1',
  run: (stage, test) => stage.pairAcross(test),
};

export const loopback: Scenario = {
  name: 'loopback',
  title: 'every kind of traffic over one adapter that talks to itself',
  hcas: 1,
  isCabled: false,
  guests: 1,
  faults: [],
  isLoaded: true,
  steps: [
    ...plainPingPongSteps(loopbackRoute),
    unreliableStep(loopbackRoute),
    ...sharedReceiveSteps(loopbackRoute),
    ...operationsSteps(loopbackRoute),
    queuePairsStep(loopbackRoute),
    ...formsSteps(loopbackRoute),
    ...longSteps(loopbackRoute),
    ownManagerStep,
  ],
};

export const cable: Scenario = {
  name: 'cable',
  title: 'traffic of every size between two adapters of a guest',
  hcas: 2,
  isCabled: true,
  guests: 1,
  faults: [],
  isLoaded: true,
  steps: [
    countersStep,
    sizesStep(cableRoute),
    mtuStep(cableRoute),
    unreliableStep(cableRoute),
    bothDirectionsStep(cableRoute),
    longestStep(cableRoute),
  ],
};

export const twoGuests: Scenario = {
  name: 'two-guests',
  title: 'two guests on two adapters',
  hcas: 2,
  isCabled: true,
  guests: 2,
  faults: [],
  isLoaded: true,
  steps: [...plainPingPongSteps(guestsRoute), briefOperationsStep(guestsRoute), ...embeddedManagerSteps],
};
