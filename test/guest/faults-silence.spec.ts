import { testScenario } from './suite.ts';

await testScenario('faults-silence', 'debian');
