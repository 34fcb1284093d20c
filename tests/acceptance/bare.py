"""An application that gives no rehearsal."""

from casework.app import App

app = App()
