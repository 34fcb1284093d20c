"""The page for users of ODF 2: the port runs, the configuration is read as it is, no name is forgotten."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from casework.process.monitor_settings import Source, effective, read_monitors
from casework.values import loads
from tests.docs.pages import ROOT, blocks, write_files

PAGE = ROOT / "docs/how_to/coming_from_odf.md"
NAMES = """
    BotTask Requires OdfModule Provides Singleton Inject Injector OdfTaskRunner GenericTask AdHocTask TransactionalTask
    InputMonitorTask InputEntityProcessorTask BusinessEntityProcessorTask SplitTransactionTask
    AbstractSplitTransactionTask AbstractJoinByParentTransactionTask SplitStatus ErrorHandlingTask
    SubmitDocumentToOcrTask ReceiveOcrResultTask RpaFactory RpaRunner RpaDriver CurrentTransaction Transaction TaskInput
    TaskVariable TransactionResult SingleResult MultipleResults OdfOutput TaskRunnerOutput TransactionRepository
    TransactionBuilder TransactionalEntityRepository OdfTransactionalEntity BusinessEntity DocumentEntity Configuration
    OdfTime StageLoggingService S3Service SecretsVaultService ControlTowerServicesModule TransactionStatus
    AbstractMonitorTaskRunner MONITOR_REPEAT_VARIABLE MonitorConfigurationEntity MonitorStateEntity ErrorEntity
    ErrorRepository ErrorType ErrorHandlingLogic MultiProcessErrorHandling FailFastErrorHandling BotTaskFactory
    InputData InputDataBuilder OutputData OrmSupport WorkerJUnitConfig ControlTower
    queryInputEntities saveInputEntity findInputEntities processInputEntities saveInputEntities findBusinessEntities
    processBusinessEntities saveBusinessEntities isNeedManualErrorHandling automationHandling updateTransactionStatus
    updateSkipUntilValue shouldSetHasErrorStatusForSiblingTransactions handleException
    monitorClass pollingInterval sleepTime maxLoops maxRunningTime _sys_repeat
"""
"""What the public example project imports of the framework and overrides, and the fields of the configuration."""


def test_the_tests_of_the_port_pass(tmp_path: Path) -> None:
    """BP-7. Intake, split, an error that is mended, and going on where it failed."""
    write_files(PAGE, tmp_path)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "casework.testing.plugin", "-p", "no:cacheprovider"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env=alone)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_the_configuration_is_taken_as_it_is() -> None:
    """BP-13. Other keys at the root do not disturb; one unexpected field, and the whole object is ignored and told."""
    (block,) = [each for each in blocks(PAGE) if each.title == "configuration.json"]
    read = read_monitors(loads(block.text))
    good, bad = (effective(name, json=read) for name in ("EmailMonitorTask", "ProcessingMonitor"))
    assert set(good.sources.values()) == {Source.JSON}
    assert (good.config.sleep_time.total_seconds(), good.config.max_loops) == (60, 500)
    assert set(bad.sources.values()) == {Source.DEFAULT}
    assert [each.field for each in bad.ignored] == ["pollingIntervall"]
    assert good.ignored == ()


def test_every_name_is_mapped() -> None:
    """Each stands in a table of the page, or in its words about statuses."""
    page = PAGE.read_text(encoding="utf-8").partition("## Classes and annotations")[2]
    assert not [name for name in NAMES.split() if not re.search(rf"(?<!\w){name}\b", page)]
